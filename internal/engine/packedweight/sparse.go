package packedweight

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Filled is an op.Packed of equal elements of type Float.
type Filled float32

// Bytes is the size of the element.
func (Filled) Bytes() int64 { return 4 }

// Decode implements op.Packed.
func (f Filled) Decode(dst []float32, p op.Part) {
	for i := range p.Rows {
		for j := range p.Cols {
			dst[i*p.DstRow+j*p.DstCol] = float32(f)
		}
	}
}

// A Sparse is an op.Packed whose elements are zero except for some. Operators with a Prepare function that accept it
// bring it into a form of their own.
type Sparse struct {
	Positions []int32 // ascending
	Values    []float32
	n         int // of elements, also while memory is only planned
}

// NewSparse returns the elements with these values at these positions, which are nil if memory is only planned; n is
// their number. It is nil unless the positions ascend.
func NewSparse[P int32 | int64](n int, positions []P, values []float32) *Sparse {
	s := &Sparse{n: n, Positions: make([]int32, 0, len(positions)), Values: make([]float32, 0, len(positions))}
	last := P(-1)
	for i, p := range positions {
		if p <= last || int64(p) > math.MaxInt32 {
			return nil
		}
		last = p
		if math.Float32bits(values[i]) != 0 {
			s.Positions, s.Values = append(s.Positions, int32(p)), append(s.Values, values[i])
		}
	}
	if positions != nil {
		s.n = len(s.Positions)
	}
	return s
}

// Scaled is s with each run of block elements times its factor. The factors are nil if memory is only planned.
func (s *Sparse) Scaled(factors []float32, block int) *Sparse {
	scaled := *s
	scaled.Values = make([]float32, len(s.Values))
	for i, p := range s.Positions {
		scaled.Values[i] = s.Values[i] * factors[int(p)/block]
	}
	return &scaled
}

// Bytes is the size of positions and values.
func (s *Sparse) Bytes() int64 { return 8 * int64(s.n) }

// NonZeros is the number of the elements that are not zero, or while memory is only planned, that may not be.
func (s *Sparse) NonZeros() int { return s.n }

// Planned is the size in the layout of the kernels, without padding, that operators bring positions and values into.
func (s *Sparse) Planned() int64 { return 5 * int64(s.n) }

// Decode implements op.Packed.
func (s *Sparse) Decode(dst []float32, p op.Part) {
	Filled(0).Decode(dst, p)
	for i := range p.Rows {
		from := p.At + i*p.Stride
		at, _ := slices.BinarySearch(s.Positions, int32(from))
		for ; at < len(s.Positions) && int(s.Positions[at]) < from+p.Cols; at++ {
			dst[i*p.DstRow+(int(s.Positions[at])-from)*p.DstCol] = s.Values[at]
		}
	}
}

// Dense is an array of this shape with the elements of a packed constant.
func Dense(p op.Packed, shape []int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	p.Decode(ir.View[float32](a), op.Part{Rows: 1, Cols: int(a.Elems()), DstCol: 1})
	return a
}
