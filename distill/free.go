package distill

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// some is the number of samples on which it is tried whether a model takes more than it declares.
const some = 3

// free reports whether the model runs on more samples than it declares. Where shapes inside say how many there are, they are
// opened, if that leaves what it makes of each sample as it is.
func (t *Trainer) free(ctx context.Context) (bool, error) {
	if t.takes(ctx, nil) {
		return true, nil
	}
	if !t.takes(ctx, t.reshapes(ctx)) {
		return false, nil
	}
	same, err := t.sameAsSingle(ctx)
	t.unfixed = same
	return same, err
}

// takes reports whether outputs have as many rows as there are samples.
func (t *Trainer) takes(ctx context.Context, change func(*grad.Tape) error) bool {
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(some), Train: t.trained, Change: change})
	if err != nil {
		return false
	}
	for _, v := range tape.Graph().Outputs {
		if shape := tape.Shape(v); len(shape) > 0 && shape[0]%some != 0 {
			return false
		}
	}
	return true
}

// reshapes lets Reshape keep the number of samples where it states one.
func (t *Trainer) reshapes(ctx context.Context) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		for n := range tape.Graph().Nodes() {
			c := n.Input(1)
			if !n.Op.Is("Reshape") || c == nil || c.Const == nil || n.Int("allowzero", 0) != 0 {
				continue
			}
			b, err := t.eval.ReadAll(ctx, c.Const)
			if err != nil {
				return err
			}
			if shape, ok := ir.ParseInts(c.Const.DType, b); ok && len(shape) > 1 && shape[0] == 1 {
				shape[0] = 0 // as it comes
				n.SetInput(1, tape.Ints(shape...))
			}
		}
		return nil
	}
}

// sameAsSingle compares what the opened model makes of some samples at once with what the model makes of each.
func (t *Trainer) sameAsSingle(ctx context.Context) (bool, error) {
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(some), Train: none, Change: t.reshapes(ctx), Bare: true})
	if err != nil {
		return false, nil
	}
	together, err := engine.Open(ctx, tape.Model, engine.Options{Workers: t.workers})
	if err != nil {
		return false, err
	}
	defer together.Close()
	alone, err := engine.Open(ctx, t.model, engine.Options{Workers: t.workers})
	if err != nil {
		return false, err
	}
	defer alone.Close()
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: some, Index: t.split.learn[:min(some, len(t.split.learn))]}) {
		if err != nil || b.N < some {
			return false, err
		}
		all, err := together.Run(ctx, b.Inputs, nil)
		if err != nil {
			return false, nil
		}
		for i := range some {
			one, err := alone.Run(ctx, rows(b.Inputs, i), nil)
			if err != nil {
				return false, nil
			}
			for name, a := range rows(all, i) {
				if !near(a, one[name]) {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// none trains nothing.
func none(string) bool { return false }

// rows are the i-th of the samples in each array.
func rows(all map[string]*ir.Array, i int) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for name, a := range all {
		row := a.Bytes() / some
		shape := append([]int64{a.Shape[0] / some}, a.Shape[1:]...)
		b := ir.NewArray(a.DType, shape...)
		copy(b.Data, a.Data[int64(i)*row:][:row])
		out[name] = b
	}
	return out
}

// near reports whether floats are equal up to rounding; other types are not compared.
func near(a, b *ir.Array) bool {
	if b == nil || len(a.Data) != len(b.Data) {
		return false
	}
	if a.DType != ir.Float {
		return true
	}
	x, y := ir.View[float32](a), ir.View[float32](b)
	for i := range x {
		if !(math.Abs(float64(x[i]-y[i])) <= 1e-4*(1+math.Abs(float64(y[i])))) {
			return false
		}
	}
	return true
}
