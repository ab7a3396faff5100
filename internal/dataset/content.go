package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// A content is the bytes of a file or of a zip's entry, unpacked.
type content struct {
	io.ReaderAt
	name   string // for messages
	size   int64  // of the file or entry, as it is stored
	packed bool   // gzip or deflate: the size of what is in it is not known
	closer io.Closer
}

// openFile opens a regular file; gzip is unpacked while it is read.
func openFile(path string) (*content, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	c := &content{ReaderAt: f, name: path, size: st.Size(), closer: f}
	if head := c.head(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		c.unpack(func() (io.ReadCloser, error) { return gzip.NewReader(io.NewSectionReader(f, 0, st.Size())) })
	}
	return c, nil
}

// unpack makes c what open gives, closing what c was with it.
func (c *content) unpack(open func() (io.ReadCloser, error)) {
	s := &stream{open: open, under: c.closer}
	c.ReaderAt, c.closer, c.packed = s, s, true
}

// fileError is err as "path: what", without the name of the system call.
func fileError(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// head are the first n bytes, or fewer.
func (c *content) head(n int) []byte {
	b := make([]byte, n)
	n, _ = c.ReadAt(b, 0)
	return b[:n]
}

// deflateRatio is the most that deflate packs: 258 bytes in 2 bits.
const deflateRatio = 1032

// holds checks that c may have end bytes, before memory is taken for them. A packed
// content is held against what its size can unpack to; that it is long enough shows when
// it is read.
func (c *content) holds(end int64) error {
	if c.packed && end/deflateRatio <= c.size {
		return nil
	}
	if !c.packed && end <= c.size {
		return nil
	}
	return fmt.Errorf("%s: its header speaks of %d bytes, but it has %d: the file is cut off or damaged", c.name, end, c.size)
}

// reader reads c from off to its end.
func (c *content) reader(off int64) io.Reader {
	const end = 1<<63 - 1
	return io.NewSectionReader(c, off, end-off)
}

// Close closes the file that c is read from; the entry of a zip has none of its own.
func (c *content) Close() error {
	if c.closer == nil {
		return nil
	}
	return c.closer.Close()
}
