package reduce

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// standardized is (x-mean)/√(variance+eps), by the formula.
func standardized(x []float64, eps float64) []float64 {
	mean := total(x, func(v float64) float64 { return v }) / float64(len(x))
	variance := total(x, func(v float64) float64 { return (v - mean) * (v - mean) }) / float64(len(x))
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(variance+eps)
	}
	return y
}

func TestLayerNormalization(t *testing.T) {
	const rows, n = 4, 6
	x := smooth(rows, 2, 3)
	for _, c := range []struct {
		name  string
		scale []int64 // broadcast to the rows of 2 × 3
	}{{"of a row", []int64{2, 3}}, {"of a part", []int64{3}}, {"one number", nil},
		{"of each row", []int64{rows, 1, 1}}, {"everything", []int64{rows, 2, 3}}} {
		for dt, epsilon := range map[ir.DType]float64{ir.Float: 1e-6, ir.Double: 1e-12, ir.Float16: 5e-3,
			ir.BFloat16: 4e-2} {
			a, scale, bias := cast(t, x, dt), cast(t, smooth(c.scale...), dt), cast(t, smooth(3), dt)
			wide, s, b := elements(t, a), elements(t, scale), elements(t, bias)
			var want []float64
			for r := range rows {
				for i, v := range standardized(wide[r*n:][:n], 1e-5) {
					k := map[string]int{"of a row": i, "of a part": i % 3, "one number": 0, "of each row": r,
						"everything": r*n + i}[c.name]
					want = append(want, v*s[k]+b[i%3])
				}
			}
			check(t, c.name+" of "+dt.String(), compute(t, "LayerNormalization", 17, arrays(a, scale, bias),
				ir.IntAttr("axis", 1)), epsilon, want...)
		}
	}
}

func TestLayerNormalizationStatistics(t *testing.T) {
	x := shaped(optest.Array[float32](1, 3, 5, 5), 2, 2)
	out := results(t, optest.Case{Type: "LayerNormalization", Version: 17, In: arrays(x, optest.Array[float32](1, 1)),
		Outputs: 3, Attrs: []*ir.Attr{ir.FloatAttr("epsilon", 0.25)}})
	check(t, "mean", out[1], 0, 2, 5)
	check(t, "inverse deviation", out[2], 1e-7, 1/math.Sqrt(1.25), 2)
	if !slices.Equal(out[1].Shape, []int64{2, 1}) {
		t.Errorf("shape %v", out[1].Shape)
	}
}

func TestRMSNormalization(t *testing.T) {
	x, scale := optest.Array[float32](3, -4), optest.Array[float32](2, 1)
	rms := math.Sqrt(12.5 + 1e-5)
	want := []float64{6 / rms, -4 / rms}
	check(t, "RMS", compute(t, "RMSNormalization", 23, arrays(x, scale)), 1e-7, want...)
	check(t, "simplified", compute(t, "SimplifiedLayerNormalization", 17, arrays(x, scale)), 1e-7, want...)
	mixed := compute(t, "RMSNormalization", 23, arrays(cast(t, x, ir.Float16), scale))
	if check(t, "mixed", mixed, 1e-7, want...); mixed.DType != ir.Float {
		t.Errorf("%s does not have the type of scale", mixed)
	}
}

// The fused operator equals Add followed by normalization.
func TestSkipNormalizations(t *testing.T) {
	x, skip, gamma, beta, bias := smooth(2, 5, 8), smooth(5, 8), smooth(8), smooth(8), random(t, ir.Float, 8)
	sum := x.Clone()
	for i := range ir.View[float32](sum) {
		ir.View[float32](sum)[i] += ir.View[float32](skip)[i%40]
		ir.View[float32](sum)[i] += ir.View[float32](bias)[i%8]
	}
	eps := ir.FloatAttr("epsilon", 1e-5)
	out := results(t, optest.Case{Domain: microsoft, Type: "SkipLayerNormalization", Version: 1,
		In: arrays(x, skip, gamma, beta, bias), Outputs: 4, Attrs: []*ir.Attr{eps}})
	check(t, "layer", out[0], 0, elements(t, compute(t, "LayerNormalization", 17, arrays(sum, gamma, beta)))...)
	check(t, "sum", out[3], 0, elements(t, sum)...)
	out = results(t, optest.Case{Domain: microsoft, Type: "SkipSimplifiedLayerNormalization", Version: 1,
		In: arrays(x, skip, gamma, bias), Attrs: []*ir.Attr{eps}})
	check(t, "simplified", out[0], 0, elements(t, compute(t, "RMSNormalization", 23, arrays(sum, gamma)))...)
}

func TestEmbedLayerNormalization(t *testing.T) {
	ids, segments := shaped(optest.Array[int32](2, 0, 1, 1), 2, 2), shaped(optest.Array[int32](1, 0, 0, 1), 2, 2)
	words, positions, tables := smooth(3, 4), smooth(2, 4), random(t, ir.Float, 2, 4)
	gamma, beta := smooth(4), random(t, ir.Float, 4)
	c := optest.Case{Domain: microsoft, Type: "EmbedLayerNormalization", Version: 1, Outputs: 3,
		In: arrays(ids, segments, words, positions, tables, gamma, beta, segments)}
	out := results(t, c)
	var sum []float32
	for i, id := range ir.View[int32](ids) {
		for k := range 4 {
			sum = append(sum, ir.View[float32](words)[int(id)*4+k]+ir.View[float32](positions)[i%2*4+k]+
				ir.View[float32](tables)[int(ir.View[int32](segments)[i])*4+k])
		}
	}
	whole := ir.ArrayOf(sum, 2, 2, 4)
	check(t, "sum", out[2], 1e-6, elements(t, whole)...)
	check(t, "normalized", out[0], 1e-5, elements(t,
		compute(t, "LayerNormalization", 17, arrays(whole, gamma, beta), ir.FloatAttr("epsilon", 1e-12)))...)
	check(t, "mask", out[1], 0, 1, 1)
	ir.View[int32](ids)[3] = 3
	if _, err := optest.Run(Ops(), c); err == nil || !strings.Contains(err.Error(), "id 3 of the word embedding is 3") {
		t.Errorf("an id out of range: %v", err)
	}
}

func TestGroupsAndInstances(t *testing.T) {
	const instances, channels, size = 2, 4, 5
	x, scale, bias := smooth(instances, channels, size), smooth(channels), random(t, ir.Float, channels)
	wide, s, b := elements(t, x), elements(t, scale), elements(t, bias)
	groups := func(perGroup int, at func(channel int) int) []float64 {
		var want []float64
		n := perGroup * size
		for g := 0; g < len(wide); g += n {
			for i, v := range standardized(wide[g:][:n], 1e-5) {
				c := at((g + i) / size % channels)
				want = append(want, v*s[c]+b[c])
			}
		}
		return want
	}
	own := func(c int) int { return c }
	two := ir.IntAttr("num_groups", 2)
	check(t, "instances", compute(t, "InstanceNormalization", 6, arrays(x, scale, bias)), 1e-6, groups(1, own)...)
	check(t, "groups, scale per channel", compute(t, "GroupNormalization", 21, arrays(x, scale, bias), two), 1e-6,
		groups(2, own)...)
	half := func(a *ir.Array) *ir.Array { return &ir.Array{DType: ir.Float, Shape: []int64{2}, Data: a.Data[:8]} }
	check(t, "groups, scale per group", compute(t, "GroupNormalization", 18, arrays(x, half(scale), half(bias)), two),
		1e-6, groups(2, func(c int) int { return c / 2 })...)
	check(t, "double", compute(t, "InstanceNormalization", 6,
		arrays(cast(t, x, ir.Double), cast(t, scale, ir.Double), cast(t, bias, ir.Double))), 1e-12, groups(1, own)...)
}

func TestBatchNormalization(t *testing.T) {
	x := shaped(optest.Array[float32](1, 2, 3, 4, 5, 6, 7, 8), 2, 2, 2)
	scale, bias, mean, variance := optest.Array[float32](2, 1), optest.Array[float32](0, 10),
		optest.Array[float32](1, 2), optest.Array[float32](4, 1)
	eps := ir.FloatAttr("epsilon", 0)
	want := []float64{0, 1, 11, 12, 4, 5, 15, 16}
	for _, version := range []int64{7, 9, 14, 15} {
		check(t, "inference", compute(t, "BatchNormalization", version, arrays(x, scale, bias, mean, variance), eps),
			1e-6, want...)
	}
	flat := shaped(x, 4, 2)
	check(t, "no further axes", compute(t, "BatchNormalization", 15, arrays(flat, scale, bias, mean, variance), eps),
		1e-6, 0, 10, 2, 12, 4, 14, 6, 16)

	out := results(t, optest.Case{Type: "BatchNormalization", Version: 15, In: arrays(x, scale, bias, mean, variance),
		Outputs: 3, Attrs: []*ir.Attr{eps, ir.IntAttr("training_mode", 1), ir.FloatAttr("momentum", 0.75)}})
	// Channel 0 has 1, 2, 5, 6: mean 3.5, variance 4.25; channel 1 is larger by two.
	check(t, "training", out[0], 1e-6, -5/math.Sqrt(4.25), -3/math.Sqrt(4.25), 10-2.5/math.Sqrt(4.25),
		10-1.5/math.Sqrt(4.25),
		3/math.Sqrt(4.25), 5/math.Sqrt(4.25), 10+1.5/math.Sqrt(4.25), 10+2.5/math.Sqrt(4.25))
	check(t, "running mean", out[1], 1e-6, 0.75+0.25*3.5, 1.5+0.25*5.5)
	check(t, "running variance", out[2], 1e-6, 3+0.25*4.25, 0.75+0.25*4.25)
}

// At opset 7 each element of an instance may be a channel of its own.
func TestBatchNormalizationNotSpatial(t *testing.T) {
	x := shaped(optest.Array[float32](1, 2, 3, 4), 1, 2, 2)
	one, zero := optest.Array[float32](1, 1, 1, 1), optest.Array[float32](0, 0, 0, 0)
	mean := optest.Array[float32](1, 1, 1, 1)
	got := compute(t, "BatchNormalization", 7, arrays(x, one, zero, mean, one), ir.IntAttr("spatial", 0),
		ir.FloatAttr("epsilon", 0))
	check(t, "not spatial", got, 0, 0, 1, 2, 3)
}

func TestMeanVarianceNormalization(t *testing.T) {
	x := smooth(2, 3, 2, 2)
	wide, want := elements(t, x), make([]float64, 24)
	for c := range 3 {
		var channel []float64
		at := func(i int) int { return i/4*12 + c*4 + i%4 }
		for i := range 8 {
			channel = append(channel, wide[at(i)])
		}
		for i, v := range standardized(channel, 0) {
			want[at(i)] = v
		}
	}
	check(t, "by default", compute(t, "MeanVarianceNormalization", 13, arrays(x)), 1e-6, want...)
	check(t, "columns", compute(t, "MeanVarianceNormalization", 9,
		arrays(shaped(optest.Array[float32](1, 5, 3, 5), 2, 2)), ir.IntsAttr("axes", 0)), 1e-6, -1, 0, 1, 0)
}

// The formula of the specification; an even size includes one more channel after than before.
func TestLRN(t *testing.T) {
	x := shaped(optest.Array[float32](1, 2, 3, 4), 1, 4, 1)
	alpha, bias, beta := 0.5, 2.0, 0.75
	var want []float64
	for _, window := range [][]float64{{1, 1, 4, 9}, {2, 1, 4, 9, 16}, {3, 4, 9, 16}, {4, 9, 16}} {
		squares := total(window[1:], func(v float64) float64 { return v })
		want = append(want, window[0]/math.Pow(bias+alpha/4*squares, beta))
	}
	attrs := []*ir.Attr{ir.IntAttr("size", 4), ir.FloatAttr("alpha", 0.5), ir.FloatAttr("bias", 2)}
	check(t, "LRN", compute(t, "LRN", 13, arrays(x), attrs...), 1e-6, want...)
}

func TestLpNormalization(t *testing.T) {
	x := shaped(optest.Array[float32](3, -4, 0, 0), 2, 2)
	check(t, "2", compute(t, "LpNormalization", 1, arrays(x)), 1e-7, 0.6, -0.8, 0, 0)
	check(t, "1", compute(t, "LpNormalization", 22, arrays(x), ir.IntAttr("p", 1)), 1e-7, 3.0/7, -4.0/7, 0, 0)
	check(t, "axis 0", compute(t, "LpNormalization", 1, arrays(x), ir.IntAttr("axis", 0)), 1e-7, 1, -1, 0, 0)
}

func TestDet(t *testing.T) {
	x := shaped(optest.Array[float32](0, 2, 3, 4, 1, 2, 2, 4), 2, 2, 2)
	check(t, "Det", compute(t, "Det", 11, arrays(x)), 1e-7, -6, 0)
	check(t, "of empty matrices", compute(t, "Det", 11, arrays(ir.NewArray(ir.Double, 2, 0, 0))), 0, 1, 1)
}
