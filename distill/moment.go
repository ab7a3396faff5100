package distill

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A moment is a running mean or variance of BatchNormalization, which training follows but no gradient changes.
type moment struct {
	name   string
	tensor *ir.Tensor // before training
	array  *ir.Array
	start  float32 // without training: 1 for a variance
}

// readMoments reads those that a step keeps.
func readMoments(ctx context.Context, e *ir.Eval, t *grad.Tape) ([]*moment, error) {
	var out []*moment
	for _, r := range t.Running {
		m := &moment{name: r.Name, tensor: r.Tensor, array: ir.NewArray(r.Tensor.DType, r.Tensor.Shape...)}
		if slices.ContainsFunc(r.Value.Uses(), func(u ir.Use) bool { return u.Index == varianceInput }) {
			m.start = 1
		}
		in, err := e.Open(ctx, r.Tensor)
		if err == nil {
			err = ir.ReadFull(in, m.array.Data, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", r.Name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// varianceInput is where BatchNormalization takes the variance.
const varianceInput = 4

// reinit forgets what the statistic was.
func (m *moment) reinit() {
	for i := range ir.View[float32](m.array) {
		ir.View[float32](m.array)[i] = m.start
	}
}

// moment is the one that was this tensor, nil if none was.
func (t *Trainer) moment(c *ir.Tensor) *moment {
	for _, m := range t.moments {
		if m.tensor == c {
			return m
		}
	}
	return nil
}

// followed makes inputs of the constants that moments were, for graphs that normalise by what they are now.
func (t *Trainer) followed(tape *grad.Tape, feeds map[string]*ir.Array) {
	for _, v := range tape.Graph().Consts() {
		m := t.moment(v.Const)
		if m == nil {
			continue
		}
		in := tape.Input(m.name, m.array.DType, m.array.Shape...)
		feeds[in.Name] = m.array
		for _, u := range v.Uses() {
			if u.Node != nil {
				u.Node.SetInput(u.Index, in)
			}
		}
	}
}
