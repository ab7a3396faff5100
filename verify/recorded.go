package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
)

// A Tolerance is how far a number may be from the recorded one: Absolute + Relative·|recorded|.
type Tolerance struct{ Relative, Absolute float64 }

// Recorded runs a on the samples of set and compares its outputs with those that were recorded.
// Where one is beyond the tolerance, Beyond says which.
func Recorded(ctx context.Context, a engine.Session, set *dataset.Set, tol Tolerance, o Options) (r *Result, beyond error, err error) {
	c := &comparison{by: map[string]*differing{}, o: o}
	for _, p := range a.Outputs() {
		c.names = append(c.names, p.Name)
	}
	recorded := 0
	for batch, err := range set.Batches(ctx, dataset.Order{Size: max(o.Batch, 1)}) {
		if err != nil {
			return nil, nil, err
		}
		got, err := a.Run(ctx, batch.Inputs, nil)
		if err != nil {
			return nil, nil, &SideError{First, err}
		}
		want := map[string]*ir.Array{}
		for name, w := range batch.Outputs {
			if got[name] == nil {
				continue
			}
			recorded++
			want[name] = w
			if miss := tol.check(w, got[name]); miss != nil && beyond == nil {
				beyond = fmt.Errorf("sample %d: output %q: %w", batch.First, name, miss)
			}
		}
		if err := c.addRecorded(batch, want, got); err != nil && beyond == nil {
			beyond = err
		}
	}
	if recorded == 0 {
		return nil, nil, errors.New("the data has no recorded outputs; give a second model to compare with, or data with outputs")
	}
	r = c.result()
	if o.Digest {
		r.Data.Digest, err = set.Digest(ctx)
	}
	return r, beyond, err
}

// addRecorded is add for the outputs that were recorded.
func (c *comparison) addRecorded(batch *dataset.Batch, want, got map[string]*ir.Array) error {
	c.samples += batch.N
	for _, name := range c.names {
		if w := want[name]; w != nil {
			if err := c.output(name, w, got[name]); err != nil {
				return fmt.Errorf("output %q: %w", name, err)
			}
		}
	}
	if labels := batch.Classes(); labels != nil {
		c.after.label(predictions(got, c.scored(), batch.N), labels)
	}
	return nil
}

// check says how got is beyond the tolerance, or nil.
func (tol Tolerance) check(want, got *ir.Array) error {
	if want.Kind != got.Kind || len(want.Items) != len(got.Items) {
		return fmt.Errorf("%s, recorded was %s", got, want)
	}
	for i := range want.Items {
		if err := tol.check(want.Items[i], got.Items[i]); err != nil {
			return err
		}
	}
	switch {
	case want.Kind != ir.Dense:
		return nil
	case want.DType != got.DType || !slices.Equal(want.Shape, got.Shape):
		return fmt.Errorf("%s, recorded was %s", got, want)
	case want.DType == ir.String:
		if !slices.Equal(want.Text, got.Text) {
			return fmt.Errorf("the text differs from the recorded one")
		}
		return nil
	}
	w, g := all(want), all(got)
	for i := range w {
		if !tol.near(w[i], g[i]) {
			return fmt.Errorf("element %d is %v, recorded was %v", i, g[i], w[i])
		}
	}
	return nil
}

func (tol Tolerance) near(want, got float64) bool {
	if !finite(want) || !finite(got) {
		return want == got || math.IsNaN(want) && math.IsNaN(got)
	}
	return math.Abs(want-got) <= tol.Absolute+tol.Relative*math.Abs(want)
}
