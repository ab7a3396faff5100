package smoothing

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// globalAlphas are tried with one value for all groups.
var globalAlphas = []float64{0.5, 0.65, 0.8}

// worthSmoothing is the minimum gain of the output SQNR in dB.
const worthSmoothing = 1

// selectBest returns the choices of maximum output SQNR on the samples: the search per group, one alpha for all groups,
// or no smoothing. The errors of single products are a poor predictor: networks amplify some errors and suppress
// others.
func selectBest(ctx context.Context, s *pass.Step, d *calibrate.Data, gs []*group, searched []choice,
	o Options) ([]choice, error) {
	r, err := newSimulation(ctx, s, d, gs)
	if err != nil || len(r.want) == 0 {
		return searched, err
	}
	defer r.end()
	none := make([]choice, len(gs))
	best, most := none, math.Inf(-1)
	try := func(list []choice, by float64) error {
		db, err := r.decibels(ctx, list)
		if err == nil && db > most+by {
			best, most = list, db
		}
		return err
	}
	if err := try(none, 0); err != nil {
		return nil, err
	}
	// What changes the model has to be better than chance on a few samples.
	most += worthSmoothing
	if err := try(searched, 0); err != nil {
		return nil, err
	}
	for _, alpha := range globalAlphas {
		list, err := choices(ctx, s, gs, Options{Alpha: alpha, Insert: o.Insert})
		if err == nil {
			err = try(list, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range none {
		none[i].reason = pass.Reason{Code: pass.NoGain, Detail: "output SQNR at any alpha"}
	}
	return best, nil
}

// A simulation is the model with fake quantization of the products to 8 bits, activations by the range of each run
// (dynamic quantization). It inserts a Mul before each group, and must be ended before the model is used otherwise.
type simulation struct {
	step         *pass.Step
	d            *calibrate.Data
	gs           []*group
	scaledInputs []*ir.Value // inputs of the products, by group
	originals    map[*ir.Value]*ir.Tensor
	outputs      []string
	want         map[string][][]float32 // by output and run
}

// newSimulation runs the unchanged model.
func newSimulation(ctx context.Context, s *pass.Step, d *calibrate.Data, gs []*group) (*simulation, error) {
	r := &simulation{step: s, d: d, gs: gs, originals: map[*ir.Value]*ir.Tensor{}, want: map[string][][]float32{}}
	for _, v := range s.Model.Graph.Outputs {
		r.outputs = append(r.outputs, v.Name)
	}
	err := r.run(ctx, r.outputs, func(name string, a *ir.Array) error {
		if a.Kind == ir.Dense && a.DType == ir.Float {
			r.want[name] = append(r.want[name], slices.Clone(ir.View[float32](a)))
		}
		return nil
	})
	if err != nil || len(r.want) == 0 {
		return r, err
	}
	for _, g := range gs {
		// A Mul before each group, also where factors will be folded: activations are rounded after it, as the product
		// will read them.
		g.insert(slices.Repeat([]float64{1}, int(g.channels())))
		r.scaledInputs = append(r.scaledInputs, g.layers[0].Node.Input(0))
		for _, l := range g.layers {
			r.originals[l.Weight] = l.Weight.Const
		}
	}
	return r, nil
}

// run visits values of all samples.
func (r *simulation) run(ctx context.Context, names []string, visit calibrate.Visit) (err error) {
	t, err := r.d.Try(ctx, r.step, r.step.Model, names, trialSamples)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return t.Run(ctx, visit)
}

// trialSamples suffice to compare output SQNRs. Spread over the data, they mostly differ from the calibration samples
// of the factors, on which the result would be biased.
const trialSamples = 13

// decibels is the minimum output SQNR in dB.
func (r *simulation) decibels(ctx context.Context, list []choice) (float64, error) {
	names := slices.Clone(r.outputs)
	for i, g := range r.gs {
		names = append(names, r.scaledInputs[i].Name)
		if err := r.set(ctx, g, r.scaledInputs[i].Producer().Input(1), list[i].factor); err != nil {
			return 0, err
		}
	}
	signal, noise, runs := map[string]float64{}, map[string]float64{}, map[string]int{}
	err := r.run(ctx, names, func(name string, a *ir.Array) error {
		if a.Kind != ir.Dense || a.DType != ir.Float {
			return nil
		}
		x := ir.View[float32](a)
		if !slices.Contains(r.outputs, name) {
			roundRun(x)
			return nil
		}
		// Runs are in the order of the first one, as the samples are.
		for i, want := range r.want[name][runs[name]] {
			signal[name] += float64(want) * float64(want)
			noise[name] += float64((want - x[i]) * (want - x[i]))
		}
		runs[name]++
		return nil
	})
	lowest := math.Inf(1)
	for _, name := range r.outputs {
		if noise[name] > 0 {
			lowest = min(lowest, 10*math.Log10(signal[name]/noise[name]))
		}
	}
	return lowest, err
}

// set sets the factors of g to f, or removes them.
func (r *simulation) set(ctx context.Context, g *group, by *ir.Value, f []float64) error {
	if f == nil {
		f = slices.Repeat([]float64{1}, int(g.channels()))
	}
	inverse := make([]float32, len(f))
	for i := range f {
		inverse[i] = float32(1 / f[i])
	}
	t := *by.Const
	t.Source = ir.Floats(inverse...)
	by.SetConst(&t)
	for _, l := range g.layers {
		// From the original: trials would multiply their factors otherwise.
		l.Weight.SetConst(r.originals[l.Weight])
		t, err := l.Rounded(ctx, f)
		if err != nil {
			return err
		}
		l.Weight.SetConst(t)
	}
	return nil
}

// end restores the model.
func (r *simulation) end() {
	for v, t := range r.originals {
		v.SetConst(t)
	}
	for i, g := range r.gs[:len(r.scaledInputs)] {
		for _, l := range g.layers {
			l.Node.SetInput(0, g.x)
		}
		r.scaledInputs[i].Drop()
	}
}

// roundRun fake-quantizes x to 256 levels over its range, extended to zero, as DynamicQuantizeLinear does.
func roundRun(x []float32) {
	lo, hi := float32(0), float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	if step := (hi - lo) / 255; step > 0 {
		for i, v := range x {
			x[i] = float32(math.RoundToEven(float64(v/step))) * step
		}
	}
}
