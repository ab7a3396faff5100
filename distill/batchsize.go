package distill

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// probeBatch is the batch size that tests whether a model supports batches of other sizes than declared.
const probeBatch = 3

// supportsDynamicBatch reports whether the model runs on other batch sizes than declared. Constant batch sizes in
// Reshape are rewritten if that does not change the outputs per sample; a plan, which does not run the model, assumes
// that it does not.
func (l *loader) supportsDynamicBatch(ctx context.Context) (bool, error) {
	// The cheap test first: most models run with any batch size, and inference of shapes finds that without a run.
	if l.runsProbeBatch(ctx, nil) {
		return true, nil
	}
	if !l.runsProbeBatch(ctx, l.reshapeRewrite(ctx)) {
		return false, nil
	}
	same, err := l.planOnly || l.set == nil, error(nil)
	if !same {
		same, err = l.sameAsSingle(ctx)
	}
	l.rewrites = same
	return same, err
}

// runsProbeBatch reports whether the first axis of all outputs is a multiple of the number of samples.
func (l *loader) runsProbeBatch(ctx context.Context, change func(*grad.Tape) error) bool {
	tape, err := grad.New(ctx, l.model, grad.Options{Inputs: l.specs(probeBatch), Train: l.params.trainable,
		Change: change})
	if err != nil {
		return false
	}
	for _, v := range tape.Graph().Outputs {
		if shape := tape.Shape(v); len(shape) > 0 && shape[0]%probeBatch != 0 {
			return false
		}
	}
	return true
}

// rewrite returns the rewrite of constant batch sizes, if this model needs it.
func (l *loader) rewrite(ctx context.Context) func(*grad.Tape) error {
	if !l.rewrites {
		return func(*grad.Tape) error { return nil }
	}
	return l.reshapeRewrite(ctx)
}

// reshapeRewrite lets Reshape copy the batch size from its input where it has the constant 1.
func (l *loader) reshapeRewrite(ctx context.Context) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		for n := range tape.Graph().Nodes() {
			c := n.Input(1)
			if !n.Op.Is("Reshape") || c == nil || c.Const == nil || n.Int("allowzero", 0) != 0 {
				continue
			}
			b, err := l.eval.ReadAll(ctx, c.Const)
			if err != nil {
				return err
			}
			if shape, ok := ir.ParseInts(c.Const.DType, b); ok && len(shape) > 1 && shape[0] == 1 {
				shape[0] = 0 // Reshape: copy the size from the input
				n.SetInput(1, tape.Ints(shape...))
			}
		}
		return nil
	}
}

// sameAsSingle compares the rewritten model on a batch with the model on each sample.
func (l *loader) sameAsSingle(ctx context.Context) (bool, error) {
	tape, err := grad.New(ctx, l.model, grad.Options{Inputs: l.specs(probeBatch), Train: none,
		Change: l.reshapeRewrite(ctx), Bare: true})
	if err != nil {
		return false, nil
	}
	batched, err := engine.Open(ctx, tape.Model, l.session())
	if err != nil {
		return false, err
	}
	defer batched.Close()
	single, err := engine.Open(ctx, l.model, l.session())
	if err != nil {
		return false, err
	}
	defer single.Close()
	for b, err := range l.batches(ctx, l.training[:min(probeBatch, len(l.training))], probeBatch, nil) {
		if err != nil || b.N < probeBatch {
			return false, err
		}
		all, err := batched.Run(ctx, b.Inputs, nil)
		if err != nil {
			return false, nil
		}
		for i := range probeBatch {
			one, err := single.Run(ctx, sampleOf(b.Inputs, i), nil)
			if err != nil {
				return false, nil
			}
			for name, a := range sampleOf(all, i) {
				if !near(a, one[name]) {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// none selects no parameters for training.
func none(string) bool { return false }

// sampleOf returns sample i of the arrays of a probe batch.
func sampleOf(batch map[string]*ir.Array, i int) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for name, a := range batch {
		size := a.Bytes() / probeBatch
		shape := append([]int64{a.Shape[0] / probeBatch}, a.Shape[1:]...)
		b := ir.NewArray(a.DType, shape...)
		copy(b.Data, a.Data[int64(i)*size:][:size])
		out[name] = b
	}
	return out
}

// near reports whether float32 arrays are equal up to rounding errors; other types are compared by size only.
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
