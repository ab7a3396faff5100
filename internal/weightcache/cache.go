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
// affected.
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
	sum, err := c.digest(ctx, f)
	if err != nil {
		return nil, err
	}
	key := keyOf(sum, f.Size(), o)
	path := filepath.Join(c.Dir, key+".weights")
	if e, err := c.mapped(ctx, f, o, key, path); e != nil || err != nil {
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
	c.addFile(path, access, o.Store.Write)
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

// mapped opens f with the weights of the file at path. It is nil if there is none or if it is invalid, which it warns
// of.
func (c *Cache) mapped(ctx context.Context, f *onnx.File, o engine.Options, key, path string) (*engine.Interpreter,
	error) {
	data, unmap, err := mapFile(path)
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
		c.warn(fmt.Errorf("%s is replaced: %w", path, err))
		return nil, nil
	}
	return e, err
}

// open opens a file of weights. Opening a pipe would wait for its writer.
func open(path string) (*os.File, int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode().IsRegular() || st.Size() == 0 {
		return nil, 0, fmt.Errorf("%s: not a file of packed weights", path)
	}
	f, err := os.Open(path)
	return f, st.Size(), err
}

// addFile adds a file. An error is a warning.
func (c *Cache) addFile(path string, access atomicfile.Access, write func(io.Writer) error) {
	_, err := atomicfile.MakeDir(c.Dir)
	if err == nil {
		// Renamed into place, as several processes that start at once write the same file, and others map it.
		err = atomicfile.Write(path, access, write)
	}
	if err != nil {
		c.warn(err)
	}
}
