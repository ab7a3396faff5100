package dataset

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A table is a feed of samples: arrays whose first axis is samples, assembled to batches of the model.
type table struct {
	samples *samples
	inputs  []binding
	outputs []binding
	labels  *binding // nil without labels
	fills   []Input
	derive  *derivation // of inputs that are not in the data; nil without any
	ids     string      // the input of token ids; empty without one
	opts    Options
	n       int64 // samples
	batched bool  // the model has a batch axis
	fixed   int64 // batch size of the model, 0 if open
}

// A binding is a column with its input of the model and the conversion.
type binding struct {
	Input
	column
	place
	relayout
	stored     []int64 // axes of a sample before its channels are moved
	conversion *conversion
}

func newTable(s *samples, inputs, outputs []Input, o Options) (*table, error) {
	t := &table{samples: s, opts: o, n: -1, batched: true}
	if err := t.bindInputs(inputs); err != nil {
		return nil, err
	}
	if err := t.bindOutputs(outputs); err != nil {
		return nil, err
	}
	if err := t.bindLabels(outputs); err != nil {
		return nil, err
	}
	if err := t.checkBatch(); err != nil {
		return nil, err
	}
	// Report inputs that cannot be filled now, not in the first batch.
	return t, t.fill(&Batch{Inputs: map[string]*ir.Array{}}, int64(t.size(1)), nil)
}

// tokens is the number of tokens of a sample.
func (t *table) tokens() int64 {
	for _, b := range t.inputs {
		if t.derive != nil && b.Name == t.derive.tokens.Name {
			return b.shapeOf(1)[1]
		}
	}
	return 0
}

func (t *table) bindInputs(inputs []Input) error {
	var fed []Input
	for _, in := range inputs {
		if _, ok := t.opts.Fill[in.Name]; ok {
			t.fills = append(t.fills, in)
		} else {
			fed = append(fed, in)
		}
	}
	if len(fed) == 0 {
		return fmt.Errorf("%s: the model has no input that is read from data", t.samples.path)
	}
	fed, err := t.removeDerived(inputs, fed)
	if err != nil {
		return err
	}
	if t.opts.Layout != UnknownLayout && len(fed) > 1 {
		return fmt.Errorf("%s: layout is for models of one input; give the arrays in the model's shapes", t.samples.path)
	}
	for _, in := range fed {
		c, err := t.samples.column(in.Name, len(fed) == 1)
		if err != nil {
			return err
		}
		b, err := t.bind(in, c, t.opts.Reshape, t.opts)
		if err != nil {
			return err
		}
		t.inputs = append(t.inputs, b)
	}
	if t.derive != nil {
		t.derive.data = t.inputs
	}
	return t.checkOptions()
}

// removeDerived removes the inputs that the data lacks and that follow from token ids, or that are carried from run
// to run.
func (t *table) removeDerived(inputs, fed []Input) ([]Input, error) {
	ids, ok := sequence(fed)
	if ok {
		t.ids = ids.Name
	}
	d := &derivation{inputs: inputs, tokens: ids, given: t.opts.Dims}
	var rest []Input
	for _, in := range fed {
		if t.opts.carries(in.Name) || ok && in.role().derivable() {
			has, err := t.samples.hasArray(in.Name)
			if err != nil {
				return nil, err
			}
			if !has {
				d.missing = append(d.missing, in)
				continue
			}
		}
		rest = append(rest, in)
	}
	if len(d.missing) > 0 {
		t.derive = d
	}
	return rest, nil
}

// checkOptions rejects options that are ambiguous for several inputs.
func (t *table) checkOptions() error {
	scaled := 0
	for _, b := range t.inputs {
		if b.conversion.hasScaling() {
			scaled++
		}
	}
	scaling := t.opts.Scale != 1 || t.opts.Mean != nil || t.opts.Std != nil
	switch {
	case scaling && scaled == 0:
		return fmt.Errorf("%s: scale, mean and std are for floating-point inputs, and the model has none", t.samples.path)
	case scaled > 1:
		return fmt.Errorf("%s: scale, mean and std are for models of one floating-point input; scale the arrays in the file",
			t.samples.path)
	case t.opts.Reshape != nil && len(t.inputs) > 1:
		return fmt.Errorf("%s: reshape is for models of one input; give the arrays in the model's shapes", t.samples.path)
	}
	return nil
}

// bind determines the conversion of samples of c to in.
func (t *table) bind(in Input, c column, reshape []int64, o Options) (binding, error) {
	b := binding{Input: in, column: c}
	row := c.row()
	if t.n < 0 {
		t.n = c.rows()
	}
	if c.rows() != t.n {
		return b, fmt.Errorf("%s has %d samples, but %s has %d", row.Name, c.rows(), t.inputs[0].row().Name, t.n)
	}
	shape := row.Shape
	if reshape != nil {
		if elems(reshape) != elems(shape) {
			return b, fmt.Errorf("%s: a sample is %v, which cannot be reshaped to %v", row.Name, shape, reshape)
		}
		shape = reshape
	}
	if err := b.arrange(in.dims(o.Dims), row.Shape, shape, o.Layout); err != nil {
		return b, fmt.Errorf("%s: %w", row.Name, err)
	}
	var err error
	if b.conversion, err = newChange(row.DType, in.elem(), b.place.shape, o); err != nil {
		return b, fmt.Errorf("%s: %w", row.Name, err)
	}
	return b, nil
}

func (t *table) bindOutputs(outputs []Input) error {
	// Scaling and reshaping are options for inputs; outputs were recorded as they are.
	plain := Options{Scale: 1, Dims: t.opts.Dims}
	for _, out := range outputs {
		c, err := t.samples.output(out.Name)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		b, err := t.bind(out, c, nil, plain)
		if err != nil {
			return err
		}
		t.outputs = append(t.outputs, b)
	}
	return nil
}

// checkBatch determines the batch size of all inputs.
func (t *table) checkBatch() error {
	for _, b := range t.inputs {
		switch {
		case !b.batched:
			t.batched = false
		case b.fixed > 0 && t.fixed > 0 && b.fixed != t.fixed:
			return fmt.Errorf("%s: %q is %s, but other inputs have a batch size of %d; give arrays whose samples are "+
				"whole inputs", b.row().Name, b.Name, typeText(b.Type), t.fixed)
		case b.fixed > 0:
			t.fixed = b.fixed
		}
	}
	if !t.batched && t.fixed > 1 {
		return fmt.Errorf("%s: some inputs have a batch size of %d, others no batch; give arrays whose samples are "+
			"whole inputs", t.samples.path, t.fixed)
	}
	if !t.batched {
		// An input without a batch axis holds one sample in each run.
		t.fixed = 1
	}
	for _, b := range t.outputs {
		if !b.batched && t.fixed != 1 {
			return fmt.Errorf("%s: recorded for single samples, but the model's inputs are batches", b.row().Name)
		}
	}
	if t.n == 0 || t.n < t.fixed {
		return fmt.Errorf("%s: %d samples are fewer than the batch size %d of the model", t.samples.path, t.n,
			max(t.fixed, 1))
	}
	return nil
}
