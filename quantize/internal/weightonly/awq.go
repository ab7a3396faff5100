package weightonly

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/smoothing"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// applyAWQ multiplies weights such that those of large activations have smaller quantization errors (Lin et al. 2023,
// arXiv:2306.00978). Activations are divided by the same factors in their producers; a separate Mul would cost more in
// every run than it gains.
func (o *BlockOptions) applyAWQ(ctx context.Context, step *pass.Step) error {
	if o == nil || o.Algo != "awq" || step.Env.DryRun { // sizes do not depend on factors
		return nil
	}
	f := smoothing.NewFolded(step)
	if len(f.Products) == 0 {
		step.Ledger.Note("", pass.Reason{Code: pass.AWQUnscaled,
			Detail: "no input of products can be scaled by its producer"})
		return nil
	}
	seen, err := o.activations(ctx, step, f)
	if err != nil {
		return err
	}
	s := &gptqRun{GPTQ: &o.GPTQ, step: step, pool: op.NewPool(step.Env.Workers)}
	defer s.pool.Close()
	factors, costs := make([][]float64, len(f.Products)), make([]int64, len(f.Products))
	for i, p := range f.Products {
		for _, l := range p.Layers {
			costs[i] += l.Inputs * l.Outputs
		}
	}
	// All factors before any is applied: the activations are those of the source, so that inputs are independent and
	// several processes may divide them.
	err = ir.Each(step.Env.Journal, costs, func(i int, mine bool) (err error) {
		p := f.Products[i]
		factors[i], err = s.factors(ctx, p, seen[p.X.Name], o, mine)
		return err
	})
	if err != nil {
		return err
	}
	scaled := false
	for i, p := range f.Products {
		if factors[i] == nil {
			continue
		}
		scaled = true
		if err := p.Scale(ctx, factors[i]); err != nil {
			return err
		}
	}
	if !scaled {
		step.Ledger.Note("", pass.Reason{Code: pass.AWQUnscaled,
			Detail: "no scale of the channels lowers the quantization error"})
	}
	f.Report(pass.AbsorbedScale)
	return nil
}

// awqRows is how many rows of an activation are used, and awqEach how many of one sample.
const awqRows, awqEach = 256, 32

// activations are rows of the inputs of products, spread over the samples.
func (o *BlockOptions) activations(ctx context.Context, s *pass.Step,
	f *smoothing.Folded) (map[string][]float32, error) {
	width, seen, useless := map[string]int{}, map[string][]float32{}, map[string]bool{}
	var names []string
	for _, p := range f.Products {
		width[p.X.Name] = int(p.Layers[0].Inputs)
		names = append(names, p.X.Name)
	}
	return seen, o.GPTQ.Data.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		k := width[name]
		if a.DType != ir.Float || len(a.Shape) == 0 || a.Shape[len(a.Shape)-1] != int64(k) {
			return nil
		}
		x := ir.View[float32](a)
		if !useless[name] && !calibrate.Finite(x) {
			useless[name] = true
			s.Ledger.Note(name, pass.Reason{Code: pass.Inputs, Detail: name + " has NaN or infinities"})
		}
		if useless[name] {
			// Rows of samples before the bad one are no statistics either.
			seen[name] = nil
			return nil
		}
		// Some rows of each sample, spread over it, until there are enough.
		rows := len(x) / k
		for i := range min(rows, awqEach, awqRows-len(seen[name])/k) {
			at := i * rows / min(rows, awqEach) * k
			seen[name] = append(seen[name], x[at:][:k]...)
		}
		return nil
	})
}

// factors are those of one activation, of an interrupted run or of another process if they are known; nil for none.
func (s *gptqRun) factors(ctx context.Context, p *smoothing.Products, x []float32, o *BlockOptions,
	mine bool) ([]float64, error) {
	b, err := ir.Once(ctx, s.step.Env.Journal, s.step.Unit(p.X.Name), mine, func() ([]byte, error) {
		by, err := s.search(ctx, p, x, o)
		return kernel.Bytes(by), err
	})
	if err != nil || len(b) == 0 {
		return nil, err
	}
	by := make([]float64, p.Layers[0].Inputs)
	copy(kernel.Bytes(by), b)
	return by, nil
}

// search returns the factors of one activation; nil for none.
func (s *gptqRun) search(ctx context.Context, p *smoothing.Products, x []float32, o *BlockOptions) ([]float64, error) {
	k := p.Layers[0].Inputs
	var ws []solve.Matrix
	for _, l := range p.Layers {
		product := weights.ConsumerAt(l.Node, false)
		if len(x) == 0 || product == nil || !product.Unsupported.None() {
			return nil, nil
		}
		w, err := s.read(ctx, &matrix{weight: l.Weight, k: int(k), n: int(l.Outputs), transposed: product.Transposed})
		if err != nil {
			return nil, err
		}
		ws = append(ws, solve.Matrix{W: w, N: int(l.Outputs)})
	}
	// Errors are those of the blocks that will be stored, with the same feedback.
	spec := o.layout(k, 1, int64(o.size()), false).Spec
	spec.Feedback = weights.HasMean(p.X)
	by := solve.AWQ(s.pool, x, int(k), ws, spec)
	if !slices.ContainsFunc(by, func(f float64) bool { return f != 1 }) {
		return nil, nil
	}
	return by, nil
}
