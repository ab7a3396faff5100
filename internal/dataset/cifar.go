package dataset

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// The records of CIFAR-10's binary version: a label, then the red, green and blue planes
// of 32×32 bytes (https://www.cs.toronto.edu/~kriz/cifar.html).
const (
	cifarPixels = 3 * 32 * 32
	cifarRecord = 1 + cifarPixels
)

// openCIFAR opens files of CIFAR-10 records and concatenates them.
func openCIFAR(paths []string) (*samples, error) {
	s := &samples{path: paths[0]}
	all := &chain{}
	for _, path := range paths {
		c, err := s.file(path)
		if err != nil {
			return s, err
		}
		if c.packed || c.size%cifarRecord != 0 {
			return s, fmt.Errorf("%s: %d bytes are not a multiple of the %d bytes of a CIFAR-10 record", path,
				c.size, cifarRecord)
		}
		all.parts = append(all.parts, c)
	}
	c := &content{ReaderAt: all, name: paths[0], size: all.size()}
	of := func(off int64, shape ...int64) *array {
		elem := element{dtype: ir.Uint8, size: 1}
		return &array{from: c, elem: elem, n: c.size / cifarRecord, shape: shape, off: off, stride: cifarRecord}
	}
	s.only, s.labels = of(1, 3, 32, 32), of(0)
	return s, nil
}

// A chain is the concatenation of files.
type chain struct{ parts []*content }

func (c *chain) size() int64 {
	n := int64(0)
	for _, p := range c.parts {
		n += p.size
	}
	return n
}

// ReadAt implements io.ReaderAt.
func (c *chain) ReadAt(b []byte, off int64) (int, error) {
	done := 0
	for _, p := range c.parts {
		if off >= p.size {
			off -= p.size
			continue
		}
		part := b[done:min(int64(len(b)), int64(done)+p.size-off)]
		if err := ir.ReadFull(p, part, off); err != nil {
			return done, err
		}
		if done += len(part); done == len(b) {
			return done, nil
		}
		// The rest of b is from the start of the next part.
		off = 0
	}
	return done, io.EOF
}
