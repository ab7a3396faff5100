package weightonly

import (
	"context"
	"errors"
	"math"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// The rules for scales.
const (
	autoSearch   = "auto"
	minMaxSearch = "minmax"
)

// Models are compared if they have at most this many bytes of weights and of values computed in a run: the more
// weights, the less the output error of one rounding differs from the expected one.
const (
	maxComparedWeights = 8 << 20
	maxComparedValues  = 64 << 20
)

// comparedSamples is the maximum number of samples of each distribution, fewer if together they compute more than
// maxComparedTotal bytes of values. With 8 instead of 32, chance decides between equal rules.
const (
	comparedSamples  = 32
	maxComparedTotal = 16 << 20
)

// executionCost is the number of bytes of values whose computation takes about as long as one execution of a node in a
// subgraph. How often a Loop executes its nodes is known after a run only.
const executionCost = 4 << 10

// minGain is the minimum difference of the output SQNR, in dB, for MSE-optimal scales.
const minGain = 0.5

// inputDistributions are those of random floating-point inputs, as functions of standard normal numbers, as the range
// of real inputs is not in the model: normalized values, small values, and uniform ones from 0 to 1.
func inputDistributions() []func(float64) float64 {
	return []func(float64) float64{
		func(x float64) float64 { return x },
		func(x float64) float64 { return 0.1 * x },
		func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 },
	}
}

// searchScales decides on the rule for scales if the options leave it open: MSE-optimal scales, unless round to nearest
// has outputs that are as good on random inputs of some distribution. Models that are too large for this, or do not run
// on random inputs, have MSE-optimal scales.
func (o *BlockOptions) searchScales(ctx context.Context, s *pass.Step, plans []*plan) error {
	if o == nil || o.Search != autoSearch || o.Algo != "" && o.Algo != "rtn" || s.Env.DryRun || s.Env.NoTrials ||
		len(plans) == 0 || weightBytes(s.Model) > maxComparedWeights {
		return nil
	}
	gain, err := o.gain(ctx, s, plans)
	if err != nil || gain >= minGain {
		return ctx.Err() // models that do not run are no error
	}
	for _, p := range plans {
		b := p.encoding.(*spec.Blockwise).Layout
		b.Rounder, b.Scales, b.Spec.Feedback = rounderBy(solve.Nearest), spec.Covering, false
		p.note(pass.Reason{Code: pass.NearestChosen})
	}
	return nil
}

// weightBytes is the size of the constants of m.
func weightBytes(m *ir.Model) (n int64) {
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			n += v.Const.Bytes()
		}
	}
	return n
}

// errTooLarge is the error of models whose runs compute too many values.
var errTooLarge = errors.New("too many values")

// gain is the difference between the output SQNR of MSE-optimal scales and that of round to nearest in dB, the minimum
// of all distributions.
func (o *BlockOptions) gain(ctx context.Context, s *pass.Step, plans []*plan) (_ float64, err error) {
	c := &scaleComparison{step: s, options: engine.Options{Workers: s.Env.Workers, Limits: s.Env.Limits}}
	defer func() { err = errors.Join(err, c.close()) }()
	if c.source, err = engine.Open(ctx, s.Model, c.options); err != nil {
		return 0, err
	}
	c.source.Observe(&c.inner)
	// Both with the rounding that would be stored: no statistic of weights or graph predicted which one has the
	// better outputs.
	if c.mse, err = c.restored(ctx, plans, solve.MSE); err != nil {
		return 0, err
	}
	if c.nearest, err = c.restored(ctx, plans, solve.Nearest); err != nil {
		return 0, err
	}
	least := math.Inf(1)
	for i, distribution := range inputDistributions() {
		gain, err := c.gain(ctx, dataset.Random{Seed: uint64(i), Floats: distribution})
		if err != nil {
			return 0, err
		}
		least = min(least, gain)
	}
	return least, nil
}

// A scaleComparison is the sessions of the model with float weights, and with those of both rules.
type scaleComparison struct {
	step                 *pass.Step
	options              engine.Options
	source, mse, nearest *engine.Interpreter
	inner                executions // of source
}

// executions is the number of executions of nodes in subgraphs.
type executions int64

// Step implements engine.Profiler.
func (n *executions) Step(e engine.Event, run func() error) error {
	if e.Index < 0 {
		*n++
	}
	return run()
}

func (c *scaleComparison) close() error {
	var errs []error
	for _, e := range []*engine.Interpreter{c.source, c.mse, c.nearest} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// restored is a session of the model with dequantized weights.
func (c *scaleComparison) restored(ctx context.Context, plans []*plan,
	by func(*solve.Quantized, []float32)) (*engine.Interpreter, error) {
	for _, p := range plans {
		source, e := p.Base.Const, *p.encoding.(*spec.Blockwise)
		// Restored on return, when the session has opened the model: the step itself goes on with the source's weights.
		defer p.Base.SetConst(source)
		layout := *e.Layout
		// A copy: the plan keeps its own rule until one is chosen.
		layout.Rounder, e.Layout = rounderBy(by), &layout
		p.Base.SetConst(e.Restore(e.Recipe().Derive()))
	}
	return engine.Open(ctx, c.step.Model, c.options)
}

// gain is the difference of the output SQNR in dB on random inputs of one seed and distribution.
func (c *scaleComparison) gain(ctx context.Context, r dataset.Random) (float64, error) {
	m := c.step.Model
	r.Samples, r.Ranges, r.Workers = comparedSamples, dataset.Ranges(m), c.step.Env.Workers
	set, err := dataset.Generate(dataset.Inputs(m.Graph), r)
	if err != nil {
		return 0, err
	}
	defer set.Close()
	mse, nearest, computed, inner := outputErrors{}, outputErrors{}, int64(0), c.inner
	for b, err := range set.Batches(ctx, dataset.Order{}) {
		if err != nil {
			return 0, err
		}
		// Planned before the run: a model that computes too much is not run at all.
		n, err := c.computed(b.Inputs)
		if err != nil {
			return 0, err
		}
		// At least one sample. A Loop counts by the executions of the runs before: slanet-1m, a decoder of 500
		// iterations, ran 288 times without them.
		if computed += n; computed+executionCost*int64(c.inner-inner) > maxComparedTotal && n < computed {
			break
		}
		want, err := c.source.Run(ctx, b.Inputs, nil)
		if err != nil {
			return 0, err
		}
		if err := mse.run(ctx, c.mse, b.Inputs, want); err != nil {
			return 0, err
		}
		if err := nearest.run(ctx, c.nearest, b.Inputs, want); err != nil {
			return 0, err
		}
	}
	return mse.lowest() - nearest.lowest(), nil
}

// computed is the number of bytes of values that a run computes.
func (c *scaleComparison) computed(inputs map[string]*ir.Array) (n int64, err error) {
	specs := map[string]ir.Spec{}
	for name, a := range inputs {
		specs[name] = a.Spec()
	}
	u, err := c.source.Usage(specs)
	if err != nil {
		return 0, err
	}
	for _, step := range u.Steps {
		for _, out := range step.Out {
			n += out.Bytes()
		}
	}
	if n > maxComparedValues {
		return n, errTooLarge
	}
	return n, nil
}

// outputErrors are the squares of outputs and of their errors, by output.
type outputErrors map[string]*struct{ signal, noise float64 }

// run adds those of one run of e, whose outputs should be those of want.
func (o outputErrors) run(ctx context.Context, e *engine.Interpreter, inputs, want map[string]*ir.Array) error {
	got, err := e.Run(ctx, inputs, nil)
	if err != nil {
		return err
	}
	for name, w := range want {
		g := got[name]
		if g == nil || w.Kind != ir.Dense || !w.DType.IsFloat() || number.Check(w.DType) != nil || w.Elems() != g.Elems() {
			continue
		}
		if o[name] == nil {
			o[name] = &struct{ signal, noise float64 }{}
		}
		x, y := make([]float64, w.Elems()), make([]float64, w.Elems())
		number.Read(x, w, 0)
		number.Read(y, g, 0)
		for i := range x {
			d := x[i] - y[i]
			o[name].signal += float64(x[i] * x[i])
			o[name].noise += float64(d * d)
		}
	}
	return nil
}

// maxSQNR is that of exact outputs in dB, about the precision of float32.
const maxSQNR = 150

// lowest is the lowest SQNR of the outputs in dB; outputs that are 0 or not finite have none.
func (o outputErrors) lowest() float64 {
	low := float64(maxSQNR)
	for _, e := range o {
		if db := 10 * math.Log10(e.signal/e.noise); e.signal > 0 && !math.IsNaN(db) {
			low = min(low, db)
		}
	}
	return low
}
