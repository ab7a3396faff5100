package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
)

// A Result is what came of running both models.
type Result struct {
	Data     Data      `json:"data"`
	Outputs  []Output  `json:"outputs"`
	Accuracy *Accuracy `json:"accuracy,omitempty"` // where the samples have labels
	Layers   []Layer   `json:"layers,omitempty"`
	Breaks   string    `json:"breaks,omitempty"` // the layer that adds most to the error
}

// Data is what the models were run on.
type Data struct {
	Samples   int    `json:"samples"`
	Generated bool   `json:"generated,omitempty"` // inputs were made up
	Digest    string `json:"digest,omitempty"`
}

// An Output is how one output of the second model differs from the first one's. Errors are
// of numbers; Agreement is the share of equal whole numbers or texts, and of rows of scores with the same
// largest one.
type Output struct {
	Name      string   `json:"name"`
	Errors    *Errors  `json:"errors,omitempty"`
	Agreement *float64 `json:"agreement,omitempty"`
}

// Accuracy is the share of samples whose class is their label.
type Accuracy struct {
	Output string  `json:"output,omitempty"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Options say what is compared.
type Options struct {
	Batch     int    // samples in one run; 0 for 1
	Output    string // with the classes, for accuracy; empty for the first that can be one
	Generated bool   // the samples were made up
	Digest    bool   // of the samples, which reads them once more
}

// A differing is the comparison of one output in the making.
type differing struct {
	sums  sums
	agree tally
	float bool
}

// Compare runs a and b on the samples of set, and b's outputs are measured by a's. Both have
// the same outputs, or it is an error.
func Compare(ctx context.Context, a, b engine.Session, set *dataset.Set, o Options) (*Result, error) {
	names, err := common(a, b)
	if err != nil {
		return nil, err
	}
	c := &comparison{names: names, by: map[string]*differing{}, o: o}
	for batch, err := range set.Batches(ctx, dataset.Order{Size: max(o.Batch, 1)}) {
		if err != nil {
			return nil, err
		}
		want, err := a.Run(ctx, batch.Inputs, names)
		if err != nil {
			return nil, &SideError{First, err}
		}
		got, err := b.Run(ctx, batch.Inputs, names)
		if err != nil {
			return nil, &SideError{Second, err}
		}
		if err := c.add(batch, want, got); err != nil {
			return nil, err
		}
	}
	r := c.result()
	r.Data.Generated = o.Generated
	if o.Digest {
		r.Data.Digest, err = set.Digest(ctx)
	}
	return r, err
}

// Sides of a comparison.
const (
	First  = "A"
	Second = "B"
)

// A SideError says which of the models could not be run.
type SideError struct {
	Side string
	Err  error
}

// Error is the model's error: who called knows what A and B are.
func (e *SideError) Error() string { return e.Err.Error() }

// Unwrap is the model's error.
func (e *SideError) Unwrap() error { return e.Err }

// common are the names of the outputs, which both must have.
func common(a, b engine.Session) ([]string, error) {
	var names []string
	others := map[string]bool{}
	for _, p := range b.Outputs() {
		others[p.Name] = true
	}
	for _, p := range a.Outputs() {
		if !others[p.Name] {
			return nil, fmt.Errorf("output %q is missing in the second model", p.Name)
		}
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("the models have no outputs")
	}
	return names, nil
}

type comparison struct {
	names         []string
	by            map[string]*differing
	o             Options
	samples       int
	before, after tally
}

func (c *comparison) add(batch *dataset.Batch, want, got map[string]*ir.Array) error {
	c.samples += batch.N
	for _, name := range c.names {
		if err := c.output(name, want[name], got[name]); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	labels := batch.Classes()
	if labels == nil {
		return nil
	}
	c.before.label(predictions(want, c.scored(), batch.N), labels)
	c.after.label(predictions(got, c.scored(), batch.N), labels)
	return nil
}

// scored are the outputs that classes are looked for in.
func (c *comparison) scored() []string {
	if c.o.Output != "" {
		return []string{c.o.Output}
	}
	return c.names
}

// label counts samples whose class is right.
func (t *tally) label(classes, labels []int64) {
	for i, class := range classes {
		t.count(i < len(labels) && class == labels[i])
	}
}

// output takes in one output of one run; sequences and maps item by item.
func (c *comparison) output(name string, want, got *ir.Array) error {
	if want.Kind != got.Kind || len(want.Items) != len(got.Items) {
		return fmt.Errorf("%s and %s", want, got)
	}
	for i := range want.Items {
		if err := c.output(name, want.Items[i], got.Items[i]); err != nil {
			return err
		}
	}
	if want.Kind != ir.Dense {
		return nil
	}
	d := c.by[name]
	if d == nil {
		d = &differing{}
		c.by[name] = d
	}
	if want.DType.IsFloat() {
		d.float = true
		if err := d.sums.add(want, got); err != nil {
			return err
		}
	} else if !slices.Equal(want.Shape, got.Shape) || want.DType != got.DType {
		return fmt.Errorf("%s and %s", want, got)
	}
	d.agree.agree(want, got)
	return nil
}

func (c *comparison) result() *Result {
	r := &Result{Data: Data{Samples: c.samples}, Outputs: []Output{}}
	for _, name := range c.names {
		o := Output{Name: name}
		if d := c.by[name]; d != nil {
			o.Agreement = d.agree.share()
			if d.float {
				e := d.sums.errors()
				o.Errors = &e
			}
		}
		r.Outputs = append(r.Outputs, o)
	}
	if before, after := c.before.share(), c.after.share(); before != nil && after != nil {
		r.Accuracy = &Accuracy{Output: c.o.Output, Before: *before, After: *after}
	}
	return r
}
