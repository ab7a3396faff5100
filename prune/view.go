package prune

import (
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A view is a payload whose elements are zeroed as they are read. It may be read anywhere
// and by several goroutines at once.
type view struct {
	in   io.ReaderAt
	size int64 // of one element in bytes

	// zero zeroes the pruned elements of b, which has whole elements from index first on and is
	// aligned for them.
	zero func(b []byte, first int64) error
}

// ReadAt reads whole elements in place; other reads are served from a copy.
func (v *view) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if off%v.size == 0 && end%v.size == 0 && kernel.Aligned(p, v.size) {
		return v.read(p, off)
	}
	from := off / v.size * v.size
	to := (end + v.size - 1) / v.size * v.size
	b := make([]byte, to-from)
	n, err := v.read(b, from)
	skip := min(int(off-from), n)
	return copy(p, b[skip:n]), err
}

func (v *view) read(b []byte, off int64) (int, error) {
	n, err := v.in.ReadAt(b, off)
	if err != nil && n < len(b) {
		return 0, err
	}
	if err := v.zero(b, off/v.size); err != nil {
		return 0, err
	}
	return len(b), nil
}
