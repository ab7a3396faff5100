package verify

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// typer infers the types of values from those of inputs; engine.Interpreter is one.
type typer interface {
	Types(in map[string]ir.Spec) (map[string]ir.Spec, error)
}

// sizedByValues reports whether the size of an output of s depends on the values of its inputs, not on their shapes
// alone: otherwise another size is a fault of the second model. A backend that does not infer types has the
// declared ones: their fixed axes, and those of an input of the same name, do not depend on values.
func sizedByValues(s Ports, name string, in map[string]*ir.Array, want, got []int64) bool {
	if t, ok := s.(typer); ok {
		specs := map[string]ir.Spec{}
		for _, p := range s.Inputs() {
			if a := in[p.Name]; a != nil && a.Kind == ir.Dense {
				specs[p.Name] = a.Spec()
			}
		}
		if types, err := t.Types(specs); err == nil {
			// Types that are inferred from shapes lack the outputs whose sizes depend on values.
			_, known := types[name]
			return !known
		}
	}
	inputs := map[string]bool{}
	for _, p := range s.Inputs() {
		for _, d := range axesOf(p.Type) {
			inputs[d.Param] = d.Param != ""
		}
	}
	for _, p := range s.Outputs() {
		for k, d := range axesOf(p.Type) {
			if p.Name == name && k < len(want) && want[k] != got[k] && (d.Known() || inputs[d.Param]) {
				return false
			}
		}
	}
	return true
}

func axesOf(t *ir.Type) []ir.Dim {
	if t == nil {
		return nil
	}
	return t.Shape
}

// sizeDifferences accumulate the runs in which an output has another size.
type sizeDifferences struct {
	runs, differ  int
	first         string
	before, after int64
	scores        bool
	common        bool // rows were compared with those at the same positions
	boxes         metric.BoxMatch
	isBoxes       bool
}

// addSizes adds a run in which the output has another size, and accumulates what both models have in common in d.
func (d *outputSums) addSizes(want, got *ir.Array, scores bool) {
	axis := firstDifference(want.Shape, got.Shape)
	d.sizes.addRun(want.String(), got.String(), want.Shape[axis], got.Shape[axis], scores)
	if axis == len(want.Shape)-2 {
		if m, ok := metric.MatchBoxes(want, got); ok {
			d.sizes.isBoxes = true
			d.sizes.boxes.Add(m)
		}
	}
	if !want.DType.IsFloat() {
		same, all := equalRows(want, got, axis)
		d.agree.yes += same
		d.agree.all += all
		return
	}
	d.sizes.common = true
	// Positions are compared as they come; Distance counts the rows that only one of both has.
	n := min(want.Shape[axis], got.Shape[axis])
	if want, got = leadingRows(want, axis, n), leadingRows(got, axis, n); measurable(want, got) &&
		slices.Equal(want.Shape, got.Shape) {
		d.sums.add(want, got)
	}
}

// addRun adds a run in which the size differs.
func (s *sizeDifferences) addRun(want, got string, before, after int64, scores bool) {
	if s.differ++; s.differ == 1 {
		s.first = want + " → " + got
	}
	s.before += before
	s.after += after
	s.scores = s.scores || scores
}

// result describes the sizes; nil if they are equal in all runs.
func (s *sizeDifferences) result(common verification.Errors) *verification.Sizes {
	if s.differ == 0 {
		return nil
	}
	r := &verification.Sizes{Runs: s.differ, Of: s.runs, First: s.first, Before: s.before, After: s.after,
		Scores: s.scores}
	if s.common {
		r.Common = &common
	}
	if m := s.boxes; s.isBoxes && m.Boxes > 0 {
		r.Boxes = &verification.Boxes{IoU: m.IoU, Matched: *rounded(2*float64(m.Pairs)/float64(m.Boxes), 9),
			Overlap: rounded(m.Overlap/float64(m.Pairs), 9)}
	}
	return r
}

// firstDifference is the first axis whose sizes differ.
func firstDifference(a, b []int64) int {
	for k := range a {
		if a[k] != b[k] {
			return k
		}
	}
	return 0
}

// leadingRows are the first n positions on an axis of a. Elements of less than a byte have none.
func leadingRows(a *ir.Array, axis int, n int64) *ir.Array {
	shape := slices.Clone(a.Shape)
	if shape[axis] = n; a.DType.Bits()%8 != 0 {
		shape[axis] = 0
	}
	y := ir.NewArray(a.DType, shape...)
	inner := ir.Spec{DType: a.DType, Shape: a.Shape[axis+1:]}.Bytes()
	from, to := int(a.Shape[axis]*inner), int(shape[axis]*inner)
	for i := 0; to > 0 && i*to < len(y.Data); i++ {
		copy(y.Data[i*to:(i+1)*to], a.Data[i*from:])
	}
	return y
}

// equalRows counts the rows of integers or strings on an axis that both have, each as often as in the one with
// fewer of it, and the rows of the longer one.
func equalRows(want, got *ir.Array, axis int) (same, all int64) {
	left := map[string]int64{}
	for _, row := range rowsOf(want, axis) {
		left[row]++
	}
	for _, row := range rowsOf(got, axis) {
		if left[row] > 0 {
			left[row]--
			same++
		}
	}
	return same, max(want.Shape[axis], got.Shape[axis])
}

// rowsOf are the positions on an axis of a, each as text.
func rowsOf(a *ir.Array, axis int) []string {
	n := int(a.Shape[axis])
	inner := int(ir.Spec{DType: ir.Uint8, Shape: a.Shape[axis+1:]}.Elems())
	rows := make([]bytes.Buffer, n)
	elem := func(i int) []byte { return fmt.Appendf(nil, "%q,", a.Text[i]) }
	switch size := int(a.DType.Bits() / 8); {
	case a.DType == ir.String:
	case number.Check(a.DType) == nil:
		xs := all(a)
		elem = func(i int) []byte { return fmt.Appendf(nil, "%v,", xs[i]) }
	case size > 0:
		elem = func(i int) []byte { return a.Data[i*size:][:size] }
	default:
		return nil
	}
	for i := range int(a.Elems()) {
		rows[i/inner%n].Write(elem(i))
	}
	out := make([]string, n)
	for i := range rows {
		out[i] = rows[i].String()
	}
	return out
}

// Distance is the noise and the signal of an output relative to that of the source: sums of squares of floats
// without padding, and of other elements the number of those that differ. The rows of an output of another size
// that the other one does not have are noise, so that another size is never exact.
func Distance(want, got *ir.Array) (noise, signal float64) {
	if want.Kind != ir.Dense || got.Kind != ir.Dense {
		return 0, 0
	}
	if len(want.Shape) != len(got.Shape) {
		return 1, 1
	}
	same := slices.Equal(want.Shape, got.Shape)
	switch {
	case same && measurable(want, got):
		s := &sums{}
		s.add(want, got)
		if s.nonFinite > 0 {
			return math.NaN(), s.signal
		}
		return s.noise, s.signal
	case same:
		t := tally{}
		t.compare(want, got)
		return float64(t.all - t.yes), float64(t.all)
	}
	d := &outputSums{}
	d.addSizes(want, got, false)
	n, rows := d.sizes, max(d.sizes.before, d.sizes.after)
	switch {
	case n.isBoxes && n.boxes.Boxes > 0:
		// A pair takes its two boxes out of the noise as far as they overlap.
		return float64(n.boxes.Boxes) - 2*n.boxes.Overlap, float64(n.boxes.Boxes)
	case d.agree.all > 0:
		return float64(d.agree.all - d.agree.yes), float64(d.agree.all)
	}
	missing := float64(rows-min(n.before, n.after)) / float64(max(1, rows))
	if d.sums.signal == 0 {
		return missing, 1
	}
	return d.sums.noise + missing*d.sums.signal, d.sums.signal
}
