package distill

import (
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A projection maps values of the student to the width of the teacher: a linear layer, or a 1×1 convolution. It is
// trained with the student, and not part of the result.
type projection struct {
	name   string
	tensor *ir.Tensor
	conv   bool
}

// newProjection returns the projection of values of a shape, whose channels are an axis, to a width.
func newProjection(shape []int64, axis int, width int64) *projection {
	p := &projection{conv: axis < len(shape)-1}
	p.tensor = &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{shape[axis], width}}}
	if p.conv {
		p.tensor.Shape = []int64{width, shape[axis]}
		for range shape[2:] {
			p.tensor.Shape = append(p.tensor.Shape, 1)
		}
	}
	return p
}

// initialize sets random weights that keep the variance of the values.
func (p *projection) initialize(name string, seed uint64) {
	in := p.tensor.Shape[0]
	if p.conv {
		in = p.tensor.Shape[1]
	}
	r, bound := rand.New(rand.NewPCG(seed, 0x70726f6a)), math.Sqrt(3/float64(in))
	w := ir.NewArray(ir.Float, p.tensor.Shape...)
	for i := range ir.View[float32](w) {
		ir.View[float32](w)[i] = float32((2*r.Float64() - 1) * bound)
	}
	p.name, p.tensor.Name, p.tensor.Source = name, name, ir.Mem(w.Data)
}

// apply appends the projection of v.
func (p *projection) apply(t *grad.Tape, v *ir.Value) *ir.Value {
	w := t.AddParam(p.name, p.tensor)
	if p.conv {
		return t.Op("Conv", []*ir.Value{v, w})
	}
	return t.Op("MatMul", []*ir.Value{v, w})
}
