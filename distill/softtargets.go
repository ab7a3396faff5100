package distill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// soft returns the targets of the terms that have teachers, nil for others. ts may be nil.
func (ts *teachers) soft(ctx context.Context, b *dataset.Batch, samples []int) ([]*ir.Array, error) {
	if ts == nil {
		return nil, nil
	}
	// All or none: a batch of which one sample is missing runs the teacher on all of them.
	if ts.cache != nil && ts.cache.has(samples) {
		return ts.cache.read(samples)
	}
	outputs := make([]map[string]*ir.Array, len(ts.each))
	for i, t := range ts.each {
		var err error
		if outputs[i], err = t.outputs(ctx, b.Inputs); err != nil {
			return nil, err
		}
	}
	out := make([]*ir.Array, len(ts.terms))
	for i, term := range ts.terms {
		var err error
		if out[i], err = ts.target(term, outputs, b.Attended); err != nil {
			return nil, err
		}
	}
	if ts.cache != nil {
		return out, ts.cache.write(out, samples)
	}
	return out, nil
}

// target returns the mean of a term's values, nil for labels. Class probabilities are averaged at the temperature, and
// returned as the scores that have them; vectors of the cosine loss are averaged as directions. Padding is no part of
// them: attended is 1 for tokens and 0 for padding, nil without any.
func (ts *teachers) target(t term, outputs []map[string]*ir.Array, attended *ir.Array) (*ir.Array, error) {
	var first *ir.Array
	for i, s := range t.soft {
		a := outputs[s.teacherIndex][s.value]
		if i == 0 {
			first = a
			if len(t.soft) > 1 {
				first = ir.NewArray(a.DType, a.Shape...)
			}
		}
		if !slices.Equal(a.Shape, first.Shape) || a.DType != ir.Float {
			return nil, fmt.Errorf("teachers: %q is %s, that of the first teacher %s", s.value, a, first)
		}
		if len(t.soft) > 1 {
			ts.addWeighted(first, withoutPadding(a, attended), t.kind, float32(ts.weights[s.teacherIndex]))
		}
	}
	if len(t.soft) > 1 && t.kind == "kl" {
		x := ir.View[float32](first)
		for i, p := range x {
			// The loss divides by the temperature and applies softmax: both are undone here.
			x[i] = float32(ts.temperature * math.Log(float64(p)))
		}
	}
	return first, nil
}

// withoutPadding is a with zeros for padding, if it has a row for each token.
func withoutPadding(a, attended *ir.Array) *ir.Array {
	if attended == nil || !ofTokens(a.Shape, attended.Shape[0], attended.Shape[1]) {
		return a
	}
	out, size := ir.NewArray(a.DType, a.Shape...), len(a.Data)/int(attended.Elems())
	for i, keep := range ir.View[float32](attended) {
		if keep != 0 {
			copy(out.Data[i*size:][:size], a.Data[i*size:])
		}
	}
	return out
}

// addWeighted adds w times the values of a teacher to their sum.
func (ts *teachers) addWeighted(sum, values *ir.Array, kind string, w float32) {
	to, x := ir.View[float32](sum), ir.View[float32](values)
	n := int(values.Shape[len(values.Shape)-1])
	if kind == "cosine" {
		n = len(x) / int(values.Shape[0])
	}
	row := make([]float32, n)
	for at := 0; at+n <= len(x) && n > 0; at += n {
		copy(row, x[at:at+n])
		switch kind {
		case "kl":
			kernel.ScaleShift(row, row, float32(1/ts.temperature), 0)
			kernel.LogSoftmax(row, row)
			kernel.Exp(row, row)
		case "cosine":
			normalize(row)
		}
		for i, v := range row {
			to[at+i] += w * v
		}
	}
}

// normalize scales x to the length 1, unless it is zero.
func normalize(x []float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if sum > 0 {
		kernel.ScaleShift(x, x, float32(1/math.Sqrt(sum)), 0)
	}
}

// distinct removes repetitions.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
