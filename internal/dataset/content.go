package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/remote"
)

// A content is the decompressed bytes of a file or zip entry.
type content struct {
	io.ReaderAt
	name   string // for messages
	size   int64  // of the file or entry, compressed
	packed bool   // gzip or deflate: the decompressed size is unknown
	closer io.Closer
	read   *atomic.Int64 // counts the bytes read; nil to not count
}

// ReadAt implements io.ReaderAt.
func (c *content) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	if c.read != nil {
		c.read.Add(int64(n))
	}
	return n, err
}

// openFile opens a regular file; gzip is decompressed on reading.
func openFile(path string) (*content, error) {
	f, size, err := openAt(path)
	if err != nil {
		return nil, err
	}
	c := &content{ReaderAt: f, name: remote.Shown(path), size: size, closer: f}
	if head := c.head(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		c.unpack(func() (io.ReadCloser, error) { return gzip.NewReader(io.NewSectionReader(f, 0, size)) })
	}
	return c, nil
}

// openAt opens a regular file at a path or URL and returns its size.
func openAt(path string) (remote.Reader, int64, error) {
	f, size, err := remote.OpenFile(context.Background(), path)
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = fileError(path, err)
	}
	return f, size, err
}

// unpack replaces the bytes of c by those of open; Close closes both.
func (c *content) unpack(open func() (io.ReadCloser, error)) {
	s := &stream{open: open, under: c.closer}
	c.ReaderAt, c.closer, c.packed = s, s, true
}

// fileError formats err as "path: cause", without the name of the system call.
func fileError(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// head returns the first n bytes, or fewer at the end of the file.
func (c *content) head(n int) []byte {
	b := make([]byte, n)
	// An error here is reported by whoever parses what is missing.
	n, _ = c.ReadAt(b, 0)
	return b[:n]
}

// deflateRatio is the maximum compression ratio of deflate: 258 bytes in 2 bits.
const deflateRatio = 1032

// checkSize checks that c can have end bytes, before memory is allocated for them. For a compressed file the bound is
// its maximum decompressed size; a shorter one is detected on reading.
func (c *content) checkSize(end int64) error {
	if c.packed && end/deflateRatio <= c.size {
		return nil
	}
	if !c.packed && end <= c.size {
		return nil
	}
	return fmt.Errorf("%s: its header specifies %d bytes, but it has %d: the file is truncated or corrupt",
		c.name, end, c.size)
}

// reader reads c from offset off to its end.
func (c *content) reader(off int64) io.Reader {
	const end = 1<<63 - 1
	return io.NewSectionReader(c, off, end-off)
}

// Close closes the file of c; a zip entry has no file of its own.
func (c *content) Close() error {
	if c.closer == nil {
		return nil
	}
	return c.closer.Close()
}
