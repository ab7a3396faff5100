package distill

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A variable is a weight that training changes, with what belongs to it. All are inputs of steps.
type variable struct {
	name   string
	tensor *ir.Tensor // before training
	array  *ir.Array
	states []*ir.Array
	buffer *ir.Array // its gradient, summed over parts of a batch; nil where steps change the weight at once
	pruned bool      // zeros stay zero
	decays bool
}

// mostZeros is the share of zeros from which on a weight counts as pruned. Trained weights
// have hardly any.
const mostZeros = 0.02

// load reads the weight.
func load(ctx context.Context, e *ir.Eval, name string, t *ir.Tensor) (*variable, error) {
	v := &variable{name: name, tensor: t, array: ir.NewArray(t.DType, t.Shape...), decays: len(t.Shape) > 1}
	r, err := e.Open(ctx, t)
	if err == nil {
		err = ir.ReadFull(r, v.array.Data, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	zeros := 0
	for _, w := range ir.View[float32](v.array) {
		if w == 0 {
			zeros++
		}
	}
	v.pruned = len(t.Shape) > 1 && float64(zeros) > mostZeros*float64(t.Elems())
	return v, nil
}

// begin gives the variable the states of an optimizer.
func (v *variable) begin(o optimizer) {
	v.states = nil
	for _, s := range o.states(v.array.Spec()) {
		v.states = append(v.states, ir.NewArray(s.DType, s.Shape...))
	}
}
