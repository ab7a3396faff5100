package weightcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/onnx"
)

// A Cache is a folder of packed weights. Any process may delete its files at any time; sessions that use them are not
// affected. It is used only if nobody but this user can have written what is in it: its weights are those that models
// are measured with.
type Cache struct {
	Dir  string
	Warn func(error) // is called with errors of the cache, which do not prevent sessions; may be nil
}

// Open is engine.Open of f. It takes packed weights from the cache, and adds them if they are missing. A nil cache has
// none.
func (c *Cache) Open(ctx context.Context, f *onnx.File, o engine.Options) (*engine.Interpreter, error) {
	if c == nil {
		return engine.Open(ctx, f.Model, o)
	}
	// The digest of their files would have to read or fetch all of them.
	if f.Packed() || remote.Is(f.Path) {
		c.warn(fmt.Errorf("%s: weights of packed models and of models at URLs are not cached", remote.Shown(f.Path)))
		return engine.Open(ctx, f.Model, o)
	}
	dir, err := c.openDir()
	if err != nil {
		c.warn(err)
		return engine.Open(ctx, f.Model, o)
	}
	defer dir.Close()
	sum, err := c.digest(ctx, dir, f)
	if err != nil {
		return nil, err
	}
	key := keyOf(sum, f.Size(), o)
	name := key + ".weights"
	if e, err := c.mapped(ctx, f, o, key, dir, name); e != nil || err != nil {
		return e, err
	}
	o.Store = &engine.Store{Key: key}
	e, err := engine.Open(ctx, f.Model, o)
	if err != nil {
		return nil, err
	}
	access, err := atomicfile.Like(f.Paths()...) // no more accessible than f
	if err != nil {
		c.warn(err)
		return e, nil
	}
	c.addFile(name, access, o.Store.Write)
	return e, nil
}

func (c *Cache) warn(err error) {
	if c.Warn != nil {
		c.Warn(fmt.Errorf("weight cache: %w", err))
	}
}

// keyOf identifies the packed weights of a model of this digest and size, opened with these options. 8-bit weights are
// packed for CPUs that multiply bytes, or for the others.
func keyOf(sum string, size int64, o engine.Options) string {
	limit := o.Limits.Resolved().Weights
	// So that the memory of the machine, from which the default follows, is no part of the key.
	if limit > 4*size { // no weight is read in each run
		limit = 0
	}
	// The layout is the same on every CPU of an architecture, but that 8-bit weights are paired for those that do not
	// multiply bytes.
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s %d %v %v %q", engine.StoredVersion, runtime.GOARCH,
		kernel.GemmIntWidth(), sum, limit, o.NoFusion, o.KeepAll, o.Keep))
	return hex.EncodeToString(h[:])
}

// openDir opens the folder, which it makes.
func (c *Cache) openDir() (*os.Root, error) {
	if _, err := atomicfile.MakeDir(filepath.Dir(c.Dir)); err != nil {
		return nil, err
	}
	return atomicfile.OpenPrivate(c.Dir)
}

// mapped opens f with the weights of a file of the folder. It is nil if there is none or if it is invalid, which it
// warns of.
func (c *Cache) mapped(ctx context.Context, f *onnx.File, o engine.Options, key string, dir *os.Root,
	name string) (*engine.Interpreter, error) {
	data, unmap, err := mapFile(dir, name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.warn(err)
		}
		return nil, nil
	}
	o.Store = &engine.Store{Key: key, Data: data, Release: unmap}
	e, err := engine.Open(ctx, f.Model, o)
	// Damaged, incomplete, or of another model: the first session of a folder that others can write to must not fail
	// for it.
	if err != nil && ctx.Err() == nil {
		c.warn(fmt.Errorf("%s is replaced: %w", filepath.Join(c.Dir, name), err))
		return nil, nil
	}
	return e, err
}

// open opens a file of weights. Opening a pipe would wait for its writer.
func open(dir *os.Root, name string) (*os.File, int64, error) {
	st, err := regular(dir, name)
	if err != nil {
		return nil, 0, err
	}
	if st.Size() == 0 {
		return nil, 0, fmt.Errorf("%s: not a file of packed weights", filepath.Join(dir.Name(), name))
	}
	f, err := dir.Open(name)
	return f, st.Size(), err
}

// regular describes a file of the folder that nobody else can have written.
func regular(dir *os.Root, name string) (fs.FileInfo, error) {
	st, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Name(), name)
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file of packed weights", path)
	}
	return st, atomicfile.CheckPrivate(path, st)
}

// addFile adds a file. An error is a warning.
func (c *Cache) addFile(name string, access atomicfile.Access, write func(io.Writer) error) {
	// Renamed into place, as several processes that start at once write the same file, and others map it.
	if err := atomicfile.Write(filepath.Join(c.Dir, name), access.OwnerWrites(), write); err != nil {
		c.warn(err)
	}
}
