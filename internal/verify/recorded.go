package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// A Tolerance bounds the error of a number: Absolute + Relative·|recorded|. What is nil follows from the element type.
type Tolerance struct{ Relative, Absolute *float64 }

// exactTolerance is the tolerance of equal numbers.
func exactTolerance() Tolerance {
	zero := 0.0
	return Tolerance{&zero, &zero}
}

// bounds returns both tolerances for an element type. By default floats of 16 bits may differ by four roundings, and by
// one of a number around 1 where sums cancel out; integers are equal.
func (tol Tolerance) bounds(dt ir.DType) (relative, absolute float64) {
	switch dt {
	case ir.Float, ir.Double:
		relative, absolute = 1e-3, 1e-5
	case ir.Float16:
		relative, absolute = 4*0x1p-10, 0x1p-10
	case ir.BFloat16:
		relative, absolute = 4*0x1p-7, 0x1p-7
	}
	if tol.Relative != nil {
		relative = *tol.Relative
	}
	if tol.Absolute != nil {
		absolute = *tol.Absolute
	}
	return relative, absolute
}

// Recorded runs a on the samples of set and compares its outputs with the recorded
// ones. Result.Beyond names the first number beyond the tolerance. Data with
// labels and without outputs gives the accuracy and the metric only.
func Recorded(ctx context.Context, a engine.Session, set *dataset.Set, tol Tolerance,
	o Options) (*verification.Result, error) {
	if len(set.Recorded()) == 0 && !set.Labelled() && o.Metric == nil {
		return nil, errors.New("the data has no recorded outputs and no labels; give a second model to compare with")
	}
	c, err := newComparison(PortNames(a.Outputs()), set, o, a)
	if err != nil {
		return nil, err
	}
	defer c.close()
	c.single = true
	beyond := ""
	for batch, err := range set.Sequences(ctx, dataset.Order{Size: c.batch, Reuse: true}) {
		if err != nil {
			return nil, err
		}
		got, err := c.runModel(ctx, a, c.states[0], batch)
		if err != nil {
			return nil, &SideError{First, err}
		}
		padding := NewPadding(a, batch)
		for _, name := range c.names {
			miss := tol.checkTokens(padding, name, batch.Outputs[name], got[name])
			if miss != nil && beyond == "" {
				beyond = fmt.Sprintf("sample %d: output %q: %v", batch.First, name, miss)
			}
		}
		// Outputs of another type or shape exceed any tolerance and have no errors.
		if err := c.addOutputs(batch, batch.Outputs, got); err != nil && beyond == "" {
			return nil, err
		}
	}
	r, err := c.result(ctx)
	if err != nil {
		return nil, err
	}
	r.Beyond = beyond
	return r, nil
}

// checkTokens is check without padding.
func (tol Tolerance) checkTokens(p *Padding, name string, want, got *ir.Array) error {
	if want == nil || want.Kind != ir.Dense || got.Kind != ir.Dense || !slices.Equal(want.Shape, got.Shape) {
		return tol.checkValue(want, got)
	}
	for want, got := range p.Parts(name, want, got) {
		if err := tol.checkValue(want, got); err != nil {
			return err
		}
	}
	return nil
}

// checkValue is an error where got exceeds the tolerance, nil where nothing was recorded.
func (tol Tolerance) checkValue(want, got *ir.Array) error {
	if want == nil {
		return nil
	}
	if want.Kind != got.Kind || len(want.Items) != len(got.Items) {
		return fmt.Errorf("%s, but %s was recorded", got, want)
	}
	for i := range want.Items {
		if err := tol.checkValue(want.Items[i], got.Items[i]); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	switch {
	case want.Kind == ir.Map:
		return exactTolerance().checkValue(want.Keys, got.Keys)
	case want.Kind != ir.Dense:
		return nil
	case want.DType != got.DType || !slices.Equal(want.Shape, got.Shape):
		return fmt.Errorf("%s, but %s was recorded", got, want)
	case want.DType == ir.String:
		return checkText(want.Text, got.Text)
	case number.Check(want.DType) != nil:
		if !bytes.Equal(want.Data, got.Data) {
			return fmt.Errorf("the bytes of %s differ from the recorded ones", got)
		}
		return nil
	}
	relative, absolute := tol.bounds(want.DType)
	return checkNumbers(all(want), all(got), relative, absolute)
}

func checkText(want, got []string) error {
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("element %d is %q, but %q was recorded", i, got[i], want[i])
		}
	}
	return nil
}

func checkNumbers(want, got []float64, relative, absolute float64) error {
	for i := range want {
		if !near(want[i], got[i], relative, absolute) {
			return fmt.Errorf("element %d is %g, but %g was recorded", i, got[i], want[i])
		}
	}
	return nil
}

func near(want, got, relative, absolute float64) bool {
	// The difference of two infinities is NaN, which is within no bounds.
	if !finite(want) || !finite(got) {
		return want == got || math.IsNaN(want) && math.IsNaN(got)
	}
	return math.Abs(want-got) <= absolute+relative*math.Abs(want)
}
