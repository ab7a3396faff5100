package prune

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// The importances of layers.
const (
	bySpread = "spread"
	byCosine = "cosine"
)

func (o Layers) checkImportance() error {
	if !slices.Contains([]string{"", bySpread, byCosine}, o.Importance) {
		return pass.OptionErrorf("--importance %s is not spread or cosine", o.Importance)
	}
	return nil
}

// influences are the block influences of the layers of each repetition, nil for evenly spaced ones.
func (o Layers) influences(ctx context.Context, s *pass.Step, found []repetition) (map[*repetition][]float64, error) {
	if o.Importance != byCosine || s.Env.DryRun || len(found) == 0 { // sizes do not depend on values
		return nil, nil
	}
	type boundary struct {
		of    *repetition
		layer int // after the boundary
	}
	influences, boundaries := map[*repetition][]float64{}, map[string][]boundary{}
	rows, inputs := map[*repetition][]int{}, map[*repetition][]float32{}
	var names []string
	for i := range found {
		r := &found[i]
		influences[r], rows[r] = make([]float64, len(*r)), make([]int, len(*r))
		for k, v := range r.boundaries() {
			if boundaries[v.Name] == nil {
				names = append(names, v.Name)
			}
			boundaries[v.Name] = append(boundaries[v.Name], boundary{r, k})
		}
	}
	data := calibrate.NewData(o.Calibration, false)
	err := data.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		if len(a.Shape) == 0 {
			return nil
		}
		k := int(a.Shape[len(a.Shape)-1])
		x, ok := hessian.Rows(a, k)
		if !ok {
			return pass.OptionErrorf("--importance cosine: %s is %s, not float32 or float16", name, a.DType)
		}
		for _, b := range boundaries[name] {
			// Boundaries of a repetition come in the order of its layers: the last one is the input of this layer.
			if b.layer > 0 && len(inputs[b.of]) == len(x) {
				sum, n := distances(inputs[b.of], x, k)
				influences[b.of][b.layer-1] += sum
				rows[b.of][b.layer-1] += n
			}
			// A copy, as the array is valid during the call only.
			inputs[b.of] = append(inputs[b.of][:0], x...)
		}
		return nil
	})
	for r, list := range influences {
		for i := range list {
			if list[i] /= float64(rows[r][i]); rows[r][i] == 0 {
				list[i] = math.Inf(1) // no input and output that can be compared, such as of other lengths
			}
		}
		if last := (*r)[len(list)-1]; last.normalization != "" && sumOf(last.last) == nil {
			list[len(list)-1] = math.Inf(1) // only the normalized sum is computed: it is no residual stream, and the layer stays
		}
	}
	return influences, err
}

// boundaries are the residual stream before the first layer and after each.
func (r repetition) boundaries() []*ir.Value {
	vs := []*ir.Value{stream(r[0].before)}
	for _, layer := range r {
		vs = append(vs, stream(layer.last))
	}
	return vs
}

// distances is the sum of 1 − cosine similarity over rows of k elements of x and y, and their number; rows of zeros do
// not count.
func distances(x, y []float32, k int) (sum float64, n int) {
	for ; len(x) > 0; x, y = x[k:], y[k:] {
		var xx, yy, xy float64
		for i, v := range x[:k] {
			a, b := float64(v), float64(y[i])
			xx += float64(a * a)
			yy += float64(b * b)
			xy += float64(a * b)
		}
		if xx > 0 && yy > 0 {
			sum, n = sum+1-xy/math.Sqrt(xx)/math.Sqrt(yy), n+1
		}
	}
	return sum, n
}

// mostImportant are the positions of the n largest scores in ascending order; of equal scores the later one counts as
// larger.
func mostImportant(scores []float64, n int) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	kept := order[len(order)-n:]
	slices.Sort(kept)
	return kept
}
