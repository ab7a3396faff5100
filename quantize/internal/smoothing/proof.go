package smoothing

import (
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// everywhere are alphas that are tried for all groups alike.
var everywhere = []float64{0.5, 0.65, 0.8}

// worthSmoothing is how many decibels the outputs have to gain.
const worthSmoothing = 1

// proven are the choices that serve the outputs best, on the samples: those of the search by group, one alpha for all groups, or
// none. What products lose says too little of it: networks amplify some errors and forget others.
func proven(c *pass.Context, d *calibrate.Data, gs []*group, searched []choice, o Options) ([]choice, error) {
	r, err := newRehearsal(c, d, gs)
	if err != nil || len(r.want) == 0 {
		return searched, err
	}
	defer r.end()
	none := make([]choice, len(gs))
	best, most := none, math.Inf(-1)
	try := func(list []choice, by float64) error {
		db, err := r.decibels(list)
		if err == nil && db > most+by {
			best, most = list, db
		}
		return err
	}
	if err := try(none, 0); err != nil {
		return nil, err
	}
	most += worthSmoothing
	if err := try(searched, 0); err != nil {
		return nil, err
	}
	for _, alpha := range everywhere {
		list, err := choices(c, gs, Options{Alpha: alpha, Insert: o.Insert})
		if err == nil {
			err = try(list, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range none {
		none[i].why = "the outputs gain nothing by any alpha"
	}
	return best, nil
}

// A rehearsal is the model with products as they would be in 8 bits, activations by the range of each run. It puts a Mul in front
// of each group, and is to be ended before anything else is done to the model.
type rehearsal struct {
	c       *pass.Context
	d       *calibrate.Data
	gs      []*group
	divided []*ir.Value // what the products read, by group
	was     map[*ir.Value]*ir.Tensor
	outputs []string
	want    map[string][][]float32 // by output and run
}

// newRehearsal runs the model as it is.
func newRehearsal(c *pass.Context, d *calibrate.Data, gs []*group) (*rehearsal, error) {
	r := &rehearsal{c: c, d: d, gs: gs, was: map[*ir.Value]*ir.Tensor{}, want: map[string][][]float32{}}
	for _, v := range c.Model.Graph.Outputs {
		r.outputs = append(r.outputs, v.Name)
	}
	err := r.run(r.outputs, func(name string, a *ir.Array) error {
		if a.Kind == ir.Dense && a.DType == ir.Float {
			r.want[name] = append(r.want[name], slices.Clone(ir.View[float32](a)))
		}
		return nil
	})
	if err != nil || len(r.want) == 0 {
		return r, err
	}
	for _, g := range gs {
		g.insert(slices.Repeat([]float64{1}, int(g.channels())))
		r.divided = append(r.divided, g.layers[0].Node.Input(0))
		for _, l := range g.layers {
			r.was[l.Weight] = l.Weight.Const
		}
	}
	return r, nil
}

// run shows values of all samples.
func (r *rehearsal) run(names []string, visit calibrate.Visit) (err error) {
	t, err := r.d.Try(r.c, r.c.Model, names, trialSamples)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return t.Run(visit)
}

// trialSamples are enough to tell decibels. Spread over all there are, they are mostly others than those that factors follow from,
// which would praise themselves.
const trialSamples = 13

// decibels is the lowest SQNR of an output.
func (r *rehearsal) decibels(list []choice) (float64, error) {
	names := slices.Clone(r.outputs)
	for i, g := range r.gs {
		names = append(names, r.divided[i].Name)
		if err := r.set(g, r.divided[i].Producer().Input(1), list[i].factor); err != nil {
			return 0, err
		}
	}
	signal, noise, runs := map[string]float64{}, map[string]float64{}, map[string]int{}
	err := r.run(names, func(name string, a *ir.Array) error {
		if a.Kind != ir.Dense || a.DType != ir.Float {
			return nil
		}
		x := ir.View[float32](a)
		if !slices.Contains(r.outputs, name) {
			roundRun(x)
			return nil
		}
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

// set gives g the factors f, or none.
func (r *rehearsal) set(g *group, by *ir.Value, f []float64) error {
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
		l.Weight.SetConst(r.was[l.Weight])
		t, err := l.Rounded(f)
		if err != nil {
			return err
		}
		l.Weight.SetConst(t)
	}
	return nil
}

// end makes the model what it was.
func (r *rehearsal) end() {
	for v, t := range r.was {
		v.SetConst(t)
	}
	for i, g := range r.gs[:len(r.divided)] {
		for _, l := range g.layers {
			l.Node.SetInput(0, g.x)
		}
		r.divided[i].Drop()
	}
}

// roundRun rounds x to 256 steps over its range, made to hold zero, as DynamicQuantizeLinear does.
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
