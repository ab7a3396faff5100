package remote

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
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// A Mirror is a folder on disk with the files of a folder in a bucket, as far as this process needs them. Names are
// paths of slashes in the folder.
//
// A log, to which one process appends, is in the bucket as objects that are never replaced. Each has the bytes from the
// offset that is its name, so that a process that continues the log elsewhere and one that continues it here do not
// both succeed.
type Mirror struct {
	settings *settings
	dir, url string

	mu      sync.Mutex
	lengths map[string]int64 // by log: the number of its first bytes that are in the bucket and on disk
	objects map[string]Object
}

// NewMirror returns the mirror in dir, which only this process uses, of the folder at url.
func NewMirror(dir, url string) *Mirror { return newMirror(processSettings(), dir, url) }

func newMirror(s *settings, dir, url string) *Mirror {
	return &Mirror{settings: s, dir: dir, url: url, lengths: map[string]int64{}, objects: map[string]Object{}}
}

// path is the path of a file on disk.
func (m *Mirror) path(name string) string { return filepath.Join(m.dir, filepath.FromSlash(name)) }

// location is the location of a file in the bucket.
func (m *Mirror) location(name string) (location, error) { return parse(Join(m.url, name)) }

// segment is the location of the object with the bytes of a log from an offset.
func (m *Mirror) segment(log string, off int64) (location, error) {
	// Digits of a fixed length, so that S3 lists the segments in order.
	return m.location(fmt.Sprintf("%s/%020d", log, off))
}

// storedSuffix is appended to the name of a log for the file that has the number of bytes in the bucket.
const storedSuffix = ".stored"

// storedLength is the number of bytes of a log that are in the bucket and on disk; 0 if the disk has lost some of them.
func (m *Mirror) storedLength(log string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.lengths[log]
	if ok {
		return n
	}
	text, _ := os.ReadFile(m.path(log + storedSuffix))
	n, err := strconv.ParseInt(string(text), 10, 64)
	if st, lost := os.Stat(m.path(log)); err != nil || lost != nil || st.Size() < n {
		n = 0
	}
	m.lengths[log] = n
	return n
}

func (m *Mirror) setStoredLength(log string, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lengths[log] = n
	return writeAtomically(m.path(log+storedSuffix), func(w io.Writer) error {
		_, err := io.WriteString(w, strconv.FormatInt(n, 10))
		return err
	})
}

// writeAtomically writes a file atomically.
func writeAtomically(path string, write func(io.Writer) error) (err error) {
	set := &atomicfile.Set{Access: atomicfile.Private()}
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := set.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := set.WriteFile(path, write); err != nil {
		return err
	}
	return set.Publish(path)
}

// Pull appends to a log on disk what is in the bucket since the last Pull or Push. If there is any, another process has
// continued the log: it replaces what is on disk and not in the bucket.
func (m *Mirror) Pull(ctx context.Context, log string) error {
	for {
		if n, err := m.pullSegment(ctx, log); n == 0 || err != nil {
			return err
		}
	}
}

// pullSegment appends a segment to a log, and returns its size; 0 if there is none.
func (m *Mirror) pullSegment(ctx context.Context, log string) (n int64, err error) {
	off := m.storedLength(log)
	loc, err := m.segment(log, off)
	if err != nil {
		return 0, err
	}
	in, err := m.settings.open(ctx, loc, pool())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(m.path(log)), 0o700); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(m.path(log), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// What is on disk after off was not pushed, and another process has continued from off: its log is the valid one.
	if err := out.Truncate(off); err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.NewOffsetWriter(out, off), io.NewSectionReader(in, 0, in.size)); err != nil {
		return 0, err
	}
	// After the content: what is stored says no more than what is on disk.
	return in.size, m.setStoredLength(log, off+in.size)
}

// Push sends what the first bytes of a log have since the last Pull or Push. It is an error if another process has
// continued the log.
func (m *Mirror) Push(ctx context.Context, log string, content io.ReaderAt, end int64) error {
	off := m.storedLength(log)
	loc, err := m.segment(log, off)
	switch {
	case err != nil:
		return err
	case end == off:
		return nil
	case end < off: // the disk has lost some of it: the next process receives all
		err := fmt.Errorf("the copy on disk has %d of %d bytes; start again", end, off)
		return errors.Join(failed(loc.text, err), m.setStoredLength(log, 0))
	}
	// The condition is that there is no segment from this offset yet: of two processes that continue a log one
	// fails.
	err = m.settings.create(ctx, loc, io.NewSectionReader(content, off, end-off))
	if errors.Is(err, errExists) {
		return failed(
			Join(m.url, log),
			errors.New("another process that was started for the same part has taken it over"),
		)
	}
	if err != nil {
		return err
	}
	return m.setStoredLength(log, end)
}

// Store sends a file that is complete, unless it is in the bucket.
func (m *Mirror) Store(ctx context.Context, name string) error {
	loc, err := m.location(name)
	if err != nil {
		return err
	}
	f, err := os.Open(m.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	u := Upload{Path: m.path(name), URL: loc.text, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if o, err := m.settings.open(ctx, loc, pool()); err == nil {
		defer o.Close()
		if o.SHA256() == u.SHA256 {
			return nil
		}
	}
	return m.settings.publish(ctx, []Upload{u})
}

// Fetch receives a file that Store has sent, unless it is on disk. One that is not in the bucket is no error.
func (m *Mirror) Fetch(ctx context.Context, name string) error {
	loc, err := m.location(name)
	if err != nil {
		return err
	}
	in, err := m.settings.open(ctx, loc, pool())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	// The object is opened even if the file is here: finalize needs its ETag for the copy in the bucket.
	if _, err = os.Stat(m.path(name)); errors.Is(err, fs.ErrNotExist) {
		err = writeAtomically(m.path(name), in.verified)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[in.SHA256()] = Object{URL: loc.text, ETag: in.tag.etag}
	return nil
}

// verified writes the content of an object, which has to have the SHA-256 in its metadata.
func (f *File) verified(w io.Writer) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(f, 0, f.size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256() {
		return failed(f.path, errors.New("its content does not have the SHA-256 in its metadata"))
	}
	return nil
}

// Object is the object with this SHA-256 among those that Fetch has received; the zero value if there is none.
func (m *Mirror) Object(sum string) Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[sum]
}

// maxRemovals is the number of objects that are removed at a time.
const maxRemovals = 8

// Remove removes all objects of the folder in the bucket.
func (m *Mirror) Remove(ctx context.Context) error {
	loc, err := m.location("")
	if err != nil {
		return err
	}
	c, err := m.settings.client(ctx, loc.text)
	if err != nil {
		return err
	}
	keys, err := m.settings.keys(ctx, c, loc.bucket, loc.key)
	if err != nil {
		return failed(loc.text, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRemovals)
	for _, key := range keys {
		g.Go(func() error {
			return m.settings.retry(ctx, func() error { return c.remove(ctx, object{loc.bucket, key}) })
		})
	}
	if err := g.Wait(); err != nil {
		return failed(loc.text, err)
	}
	return nil
}
