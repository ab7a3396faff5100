package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// Options select the samples and outputs to compare.
type Options struct {
	Batch    int          // samples in one run, where the batch axis is dynamic; 0 for 1
	Scores   string       // the output with classes or scores; empty for the first suitable one
	Fitted   map[int]bool // samples that b was fitted to, excluded from Likelihood
	Parallel int          // concurrent runs of b; 0 for 1

	Metric metric.Measure // besides accuracy; nil for none

	// receives the counts of accuracy of each run, in order; an error ends the comparison; nil for none
	Counted func(metric.Count) error
}

// Compare runs a and b on the samples of set and compares b's outputs with a's. b may lack
// inputs of a, but must have its outputs, except those of removed layers. Errors of a model are *SideErrors.
func Compare(ctx context.Context, a, b engine.Session, set *dataset.Set, o Options) (*verification.Result, error) {
	names, notes, err := commonOutputs(PortNames(a.Outputs()), PortNames(b.Outputs()))
	if err != nil {
		return nil, err
	}
	names, fewer := fewerHeads(names, a.Outputs(), b.Outputs())
	c, err := newComparison(names, set, o, a, b)
	if err != nil {
		return nil, err
	}
	defer c.close()
	c.notes = append(notes, fewer...)
	start := func(batch *dataset.Batch) (func(context.Context) (pair, error), error) {
		return c.startRuns(ctx, a, b, batch)
	}
	if len(set.Carry()) > 0 {
		// A run needs the outputs of the one before.
		o.Parallel = 1
	}
	err = InOrder(ctx, o.Parallel, set.Sequences(ctx, dataset.Order{Size: c.batch, Reuse: o.Parallel <= 1}), start,
		func(batch *dataset.Batch, p pair) error {
			return c.addBatch(batch, p)
		})
	if err != nil {
		return nil, err
	}
	return c.result(ctx)
}

// Sides of a comparison.
const (
	First  = "A"
	Second = "B"
)

// A SideError is an error of one of the models.
type SideError struct {
	Side string
	Err  error
}

// Error is the model's error without its side, which callers name.
func (e *SideError) Error() string { return e.Err.Error() }

// Unwrap is the model's error.
func (e *SideError) Unwrap() error { return e.Err }

// commonOutputs are the outputs of the first model, want, that those of the second one, got, are compared with.
// Only those of layers that the second one does not have may be missing, which notes state.
func commonOutputs(want, got []string) (names, notes []string, err error) {
	has := make(map[string]bool, len(got))
	for _, name := range got {
		has[name] = true
	}
	names = want
	for {
		i := slices.IndexFunc(names, func(name string) bool { return !has[name] })
		if i < 0 {
			return names, notes, nil
		}
		l := layersOf(names[i], names, has)
		if l == nil {
			return nil, nil, &SideError{Second, fmt.Errorf("output %q of the first model is missing", names[i])}
		}
		var note string
		names, note = l.without(names, has)
		notes = append(notes, note)
	}
}

// PortNames are the names of inputs or outputs, in order.
func PortNames(ports []op.Port) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name
	}
	return names
}

// InputsOf are the inputs that s has, in its data types and with its numbers of heads: a compressed model may lack
// some of its source's inputs, or have them in 16 bits, or caches of fewer heads.
func InputsOf(s engine.Session, in map[string]*ir.Array) map[string]*ir.Array {
	mine := map[string]*ir.Array{}
	for _, p := range s.Inputs() {
		if x := in[p.Name]; x != nil {
			mine[p.Name] = firstHeads(cast(x, p.Type), p.Type)
		}
	}
	return mine
}

// castBlock is the number of elements that cast converts at once.
const castBlock = 4 << 10

// cast is x in the float type of t. Other arrays are returned as they are.
func cast(x *ir.Array, t *ir.Type) *ir.Array {
	if t == nil || x.Kind != ir.Dense || x.DType == t.Elem || number.Check(x.DType) != nil ||
		number.Check(t.Elem) != nil || !x.DType.IsFloat() || !t.Elem.IsFloat() {
		return x
	}
	y, buf := ir.NewArray(t.Elem, x.Shape...), make([]float64, castBlock)
	for at, n := 0, int(x.Elems()); at < n; at += castBlock {
		block := buf[:min(castBlock, n-at)]
		number.Read(block, x, at)
		number.Write(y, at, block)
	}
	return y
}

// A comparison accumulates a Result.
type comparison struct {
	Options
	set             *dataset.Set
	names           []string // of the outputs
	notes           []string
	outputs         map[string]*outputSums
	batch           int
	samples         int
	single          bool             // outputs are compared with recorded ones, not with those of a model
	accuracy        *metric.Accuracy // top-1 accuracy; nil if outputs and labels have none
	inapplicability string           // why they have none
	metric          metric.Scorer    // nil for none
	drop            likelihoodDrop
	labels          map[int64]float64 // number of each class
	first           engine.Session    // the first model
	states          []*dataset.State  // of the models
}

// An outputSums accumulates the comparison of one output.
type outputSums struct {
	sums    sums
	spread  spread
	agree   tally
	numeric bool
	sizes   sizeDifferences
	seen    bool // a tensor was compared
}

func newComparison(names []string, set *dataset.Set, o Options, models ...engine.Session) (*comparison, error) {
	switch {
	case len(names) == 0:
		return nil, &SideError{First, errors.New("the model has no outputs")}
	case o.Scores != "" && !slices.Contains(names, o.Scores):
		return nil, fmt.Errorf("unknown output %q; outputs are %s", o.Scores, strings.Join(names, ", "))
	}
	c := &comparison{Options: o, set: set, names: names, outputs: map[string]*outputSums{}, labels: map[int64]float64{},
		batch: set.Size(o.Batch)}
	c.first = models[0]
	for _, s := range models {
		c.states = append(c.states, dataset.NewState(statePairs(s, set)))
	}
	return c, c.openMetrics()
}

// statePairs are the outputs of s that are inputs of the next run. A model with fewer layers has fewer caches.
func statePairs(s engine.Session, set *dataset.Set) []dataset.Pair {
	has := PortNames(s.Outputs())
	return slices.DeleteFunc(set.Carry(), func(p dataset.Pair) bool { return !slices.Contains(has, p.Output) })
}

// A pair is the outputs of both models.
type pair struct{ want, got map[string]*ir.Array }

// startRuns runs a and returns the run of b.
func (c *comparison) startRuns(ctx context.Context, a, b engine.Session,
	batch *dataset.Batch) (func(context.Context) (pair,
	error), error) {
	want, err := c.runModel(ctx, a, c.states[0], batch)
	if err != nil {
		return nil, &SideError{First, err}
	}
	return func(ctx context.Context) (pair, error) {
		got, err := c.runModel(ctx, b, c.states[1], batch)
		if err != nil {
			return pair{}, &SideError{Second, err}
		}
		return pair{want, got}, nil
	}, nil
}

// runModel runs s with the outputs that it carries from its run before.
func (c *comparison) runModel(ctx context.Context, s engine.Session, state *dataset.State,
	batch *dataset.Batch) (map[string]*ir.Array, error) {
	out, err := s.Run(ctx, InputsOf(s, state.Inputs(batch)), state.Fetch(c.names))
	if err == nil {
		state.Keep(out)
	}
	return out, err
}

// addBatch accumulates the outputs of a batch.
func (c *comparison) addBatch(batch *dataset.Batch, p pair) error {
	var none *metric.Inapplicable
	err := c.addOutputs(batch, p.want, p.got)
	if err == nil || errors.As(err, &none) {
		return err
	}
	return &SideError{Second, err}
}

// addOutputs accumulates the outputs of a batch. Outputs that want lacks are not compared.
func (c *comparison) addOutputs(batch *dataset.Batch, want, got map[string]*ir.Array) error {
	// Further steps of decoding are runs on the same samples.
	if batch.Step == 0 {
		c.samples += batch.N
	}
	r := &batchComparison{c, batch.Inputs, NewPadding(c.first, batch)}
	for _, name := range c.names {
		if want[name] == nil {
			continue
		}
		c.sumsOf(name).sizes.runs++
		if err := r.output(name, want[name], got[name]); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return c.addMetrics(batch, want, got)
}

// ScoreOutputs are the outputs that may hold classes or scores: the one of this name, or if it is empty, all of them.
func ScoreOutputs(scores string, all []string) []string {
	if scores != "" {
		return []string{scores}
	}
	return all
}

// A batchComparison is the accumulation of the outputs of one run.
type batchComparison struct {
	*comparison
	inputs  map[string]*ir.Array
	padding *Padding // nil for none
}

// sumsOf are the sums of the output of that name.
func (c *comparison) sumsOf(name string) *outputSums {
	d := c.outputs[name]
	if d == nil {
		d = &outputSums{}
		c.outputs[name] = d
	}
	return d
}

// output accumulates one output; sequences and maps item by item.
func (r *batchComparison) output(name string, want, got *ir.Array) error {
	if want.Kind != got.Kind || want.Kind != ir.Sequence && len(want.Items) != len(got.Items) {
		return fmt.Errorf("%s, but %s in the source", got, want)
	}
	d, scores := r.sumsOf(name), r.Scores == "" || r.Scores == name
	if before, after := len(want.Items), len(got.Items); before != after {
		d.sizes.addRun(want.String(), got.String(), int64(before), int64(after), scores)
		d.sizes.common, d.seen = true, true
	}
	for i := range min(len(want.Items), len(got.Items)) {
		if err := r.output(name, want.Items[i], got.Items[i]); err != nil {
			return err
		}
	}
	if want.Kind == ir.Map {
		return exactTolerance().checkValue(want.Keys, got.Keys)
	}
	if want.Kind != ir.Dense {
		return nil
	}
	d.seen = true
	floats := want.DType.IsFloat() && got.DType.IsFloat()
	if len(want.Shape) != len(got.Shape) || want.DType != got.DType && !floats {
		return fmt.Errorf("%s, but %s in the source", got, want)
	}
	if !slices.Equal(want.Shape, got.Shape) {
		if !sizedByValues(r.first, name, r.inputs, want.Shape, got.Shape) {
			return fmt.Errorf("%s, but %s in the source", got, want)
		}
		d.addSizes(want, got, scores)
		return nil
	}
	// What one run adds, for the deviation between runs.
	before := d.sums
	for want, got := range r.padding.Parts(name, want, got) {
		if floats && measurable(want, got) {
			d.numeric = true
			d.sums.add(want, got)
		}
		if scores {
			d.agree.compare(want, got)
		}
	}
	if d.numeric {
		d.spread.add(d.sums.noise-before.noise, d.sums.signal-before.signal)
	}
	return nil
}

// result is that of all batches.
func (c *comparison) result(ctx context.Context) (*verification.Result, error) {
	r := &verification.Result{Data: &verification.Data{Samples: c.samples, Batch: c.batch},
		Notes: slices.Concat(c.notes, c.set.Notes())}
	if note := c.set.ClassNote(); note != "" {
		r.Notes = append(r.Notes, note)
	}
	if c.samples == 0 {
		return nil, errors.New("the data has no samples")
	}
	for _, name := range c.names {
		if d := c.outputs[name]; d != nil && d.seen {
			r.Outputs = append(r.Outputs, d.output(name))
		}
	}
	if err := c.reportMetrics(ctx, r); err != nil {
		return nil, err
	}
	return r, nil
}

func (d *outputSums) output(name string) verification.Output {
	o := verification.Output{Name: name, Agreement: d.agree.fraction(), Sizes: d.sizes.result(d.sums.errors())}
	if o.Sizes != nil && o.Sizes.Common != nil {
		o.Agreement = nil // rows that are missing shift those after them
		return o
	}
	if d.numeric {
		e := d.sums.errors()
		e.Deviation = d.spread.deviation()
		o.Errors = &e
	}
	return o
}
