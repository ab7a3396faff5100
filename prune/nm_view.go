package prune

import (
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A slabView prunes the slabs that a read touches and returns the requested part.
type slabView struct {
	s  *slabs
	in io.ReaderAt
}

// ReadAt may be called by several goroutines at once.
func (v *slabView) ReadAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	size := v.s.size()
	from := v.s.floor(off / size)
	to := v.s.ceil((off + int64(len(p)) + size - 1) / size)
	b, err := v.s.read(v.in, from, to)
	if err != nil {
		return 0, err
	}
	return copy(p, b[off-from*size:]), nil
}

// pruneGroups prunes b, which begins with a group, in its own type.
func (s *slabs) pruneGroups(b []byte) {
	switch s.t.DType {
	case ir.Float:
		s.narrow(kernel.Words[float32](b))
	case ir.Double:
		kernel.NMColsDouble(kernel.Words[float64](b), int(s.axis.inner), s.N, s.M)
	default:
		s.halves(kernel.Words[uint16](b))
	}
}

func (s *slabs) narrow(x []float32) {
	if s.axis.inner == 1 {
		kernel.NMRows(x, s.N, s.M)
		return
	}
	kernel.NMCols(x, int(s.axis.inner), s.N, s.M)
}

// halves prunes float16 or bfloat16 by way of float32, which orders them in the same way.
// Elements that stay keep their bits.
func (s *slabs) halves(x []uint16) {
	wide := make([]float32, len(x))
	if s.t.DType == ir.Float16 {
		kernel.F32FromF16(wide, x)
	} else {
		kernel.F32FromBF16(wide, x)
	}
	s.narrow(wide)
	for i, v := range wide {
		// Pruned elements are +0; a -0 that stays is no change.
		if math.Float32bits(v) == 0 {
			x[i] = 0
		}
	}
}
