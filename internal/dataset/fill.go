package dataset

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// sizes are the known sizes of open axes of a batch: from the command line and from the inputs in the data.
type sizes struct {
	named map[string]int64
	seen  []inputShape
}

type inputShape struct {
	dims  []ir.Dim
	shape []int64
}

func newSizes(given map[string]int64) *sizes {
	s := &sizes{named: map[string]int64{}}
	for name, n := range given {
		s.named[name] = n
	}
	return s
}

// record adds the sizes of an input with the given axes and shape.
func (s *sizes) record(dims []ir.Dim, shape []int64) {
	if len(dims) != len(shape) {
		return
	}
	s.seen = append(s.seen, inputShape{dims, shape})
	for i, d := range dims {
		if _, ok := s.named[d.Param]; !ok && d.Param != "" {
			s.named[d.Param] = shape[i]
		}
	}
}

// shape is the shape of an input that is not in the data. An open axis has the size of the axis of the same name;
// without a name, that of the same axis of an input of the same rank, or of the first axis of any input.
func (s *sizes) shape(in Input) ([]int64, error) {
	dims := in.dims(s.named)
	if dims == nil {
		return nil, fmt.Errorf("input %q: a filled input must have a known shape; add it to the data", in.Name)
	}
	shape := make([]int64, len(dims))
	for i, d := range dims {
		n, ok := d.N, d.Known()
		if !ok && d.Param == "" {
			n, ok = s.similarAxis(i, len(dims))
		}
		if !ok {
			return nil, fmt.Errorf("input %q is %s: the size of axis %d is unknown; set it with --dim %s=N, or add the "+
				"input to the data", in.Name, typeText(in.Type), i, firstNonEmpty(d.Param, "NAME"))
		}
		shape[i] = n
	}
	return shape, nil
}

// similarAxis is the size of axis i of another input of that rank with this axis open.
func (s *sizes) similarAxis(i, rank int) (int64, bool) {
	open := func(o inputShape, i int) bool { return i < len(o.dims) && !o.dims[i].Known() }
	for _, o := range s.seen {
		if len(o.dims) == rank && open(o, i) {
			return o.shape[i], true
		}
	}
	for _, o := range s.seen {
		if i == 0 && open(o, 0) {
			return o.shape[0], true
		}
	}
	return 0, false
}

// fill adds the inputs that are not in the data.
func (s *sizes) fill(to map[string]*ir.Array, inputs []Input, values map[string]float64, memory *buffers) error {
	for _, in := range inputs {
		v, ok := values[in.Name]
		if !ok {
			continue
		}
		shape, err := s.shape(in)
		if err != nil {
			return err
		}
		if to[in.Name], err = constantArray(in, shape, v, memory); err != nil {
			return err
		}
	}
	return nil
}

// constantArray is an array for in whose elements are all v.
func constantArray(in Input, shape []int64, v float64, memory *buffers) (*ir.Array, error) {
	s := ir.Spec{DType: in.elem(), Shape: shape}
	if err := s.Valid(); err != nil {
		return nil, fmt.Errorf("input %q: %w", in.Name, err)
	}
	if s.Bytes() > maxSample {
		return nil, fmt.Errorf("input %q: %s is too large to be filled", in.Name, s)
	}
	write := writer[float64](in.elem())
	if write == nil {
		return nil, fmt.Errorf("input %q: %s cannot be filled with a number; add it to the data", in.Name, s)
	}
	all := memory.array(in.elem(), shape...)
	if len(all.Data) == 0 {
		return all, nil
	}
	if write(all, 0, []float64{v}) >= 0 {
		return nil, fmt.Errorf("input %q: %v does not fit %s", in.Name, v, in.elem())
	}
	for n := int(in.elem().Bits() / 8); n < len(all.Data); n *= 2 {
		// Each copy doubles the part that is filled.
		copy(all.Data[n:], all.Data[:n])
	}
	return all, nil
}
