package linear

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// waves is a tensor of numbers with a long period.
func waves(dt ir.DType, phase float64, shape ...int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	x := make([]float64, a.Elems())
	for i := range x {
		x[i] = math.Sin(float64(i)*1.7 + phase)
	}
	return numbers(dt, shape, x...)
}

// heads rearranges [batch, tokens, heads·size] to [batch, heads, tokens, size].
func heads(a *ir.Array, n int64) *ir.Array {
	b, t, size := a.Shape[0], a.Shape[1], a.Shape[2]/n
	x, y := values(a), make([]float64, a.Elems())
	for i := range b * t * n * size {
		d, h, token, batch := i%size, i/size%n, i/size/n%t, i/size/n/t
		y[((batch*n+h)*t+token)*size+d] = x[i]
	}
	return numbers(a.DType, []int64{b, n, t, size}, y...)
}

// result is the elements of output i.
func result(t *testing.T, c call, i int) []float64 {
	t.Helper()
	c.outputs = max(c.outputs, i+1)
	out, err := c.run()
	if err != nil {
		t.Fatal(err)
	}
	return values(out[i])
}

func near(t *testing.T, name string, got, want []float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d elements, want %d", name, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= within) {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, got[i], want[i])
		}
	}
}

func headAttrs(q, kv int64, more ...*ir.Attr) []*ir.Attr {
	return append(more, ir.IntAttr("q_num_heads", q), ir.IntAttr("kv_num_heads", kv))
}

// A single key has all the weight: the result is its value.
func TestAttentionToASingleKeyIsItsValue(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16} {
		v := waves(dt, 3, 1, 1, 1, 4)
		in := []*ir.Array{waves(dt, 1, 1, 2, 1, 3), waves(dt, 2, 1, 1, 1, 3), v}
		want(t, call{op: "Attention", in: in}, []int64{1, 2, 1, 4}, slices.Concat(values(v), values(v)), 0)
	}
}

// Inputs of three axes hold the heads of each token one after the other.
func TestAttentionOfPackedHeads(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 2, 5, 12), waves(ir.Float, 2, 2, 7, 6), waves(ir.Float, 3, 2, 7, 8)
	packed := result(t, call{op: "Attention", attrs: headAttrs(4, 2), in: []*ir.Array{q, k, v}, workers: 3}, 0)
	split := call{op: "Attention", in: []*ir.Array{heads(q, 4), heads(k, 2), heads(v, 2)}}
	near(t, "Y", values(heads(numbers(ir.Float, []int64{2, 5, 16}, packed...), 4)), result(t, split, 0), 0)
}

// Past keys and values precede the new ones.
func TestAttentionWithPast(t *testing.T) {
	k, v := waves(ir.Float16, 2, 2, 3, 6, 4), waves(ir.Float16, 3, 2, 3, 6, 5)
	q := waves(ir.Float16, 1, 2, 3, 2, 4)
	whole := call{op: "Attention", in: []*ir.Array{q, k, v}}
	parted := call{op: "Attention", in: []*ir.Array{q, tokens(k, 4, 6), tokens(v, 4, 6), nil, tokens(k, 0, 4),
		tokens(v, 0, 4)}}
	near(t, "Y", result(t, parted, 0), result(t, whole, 0), 0)
	near(t, "present_key", result(t, parted, 1), values(k), 0)
	near(t, "present_value", result(t, parted, 2), values(v), 0)
}

// tokens is a range of tokens of a tensor [batch, heads, tokens, size].
func tokens(a *ir.Array, from, to int64) *ir.Array {
	s := a.Shape
	var x []float64
	for i := range s[0] * s[1] {
		x = append(x, values(a)[(i*s[2]+from)*s[3]:(i*s[2]+to)*s[3]]...)
	}
	return numbers(a.DType, []int64{s[0], s[1], to - from, s[3]}, x...)
}

// A boolean mask equals an additive one of zeros and infinities, and a shorter mask masks the remaining keys.
func TestAttentionMasks(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 1, 2, 3, 4), waves(ir.Float, 2, 1, 2, 4, 4), waves(ir.Float, 3, 1, 2, 4, 4)
	inf := math.Inf(-1)
	long := numbers(ir.Float, []int64{3, 4}, 0, inf, 0, inf, 0, 0, inf, inf, inf, inf, inf, inf)
	by := func(mask *ir.Array) []float64 {
		return result(t, call{op: "Attention", in: []*ir.Array{q, k, v, mask}}, 0)
	}
	want := by(long)
	if !slices.Equal(want[8:12], make([]float64, 4)) {
		t.Errorf("a query with all keys masked gives %v, want zeros", want[8:12])
	}
	flags := numbers(ir.Bool, []int64{1, 1, 3, 4}, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0)
	short := numbers(ir.Float, []int64{3, 3}, 0, inf, 0, 0, 0, inf, inf, inf, inf)
	near(t, "flags", by(flags), want, 0)
	near(t, "short", by(short), want, 0)
	double := numbers(ir.Double, []int64{3, 4}, values(long)...)
	near(t, "of another type", by(double), want, 0)
}

func TestAttentionCausalEqualsTriangularMask(t *testing.T) {
	in := []*ir.Array{waves(ir.Float, 1, 1, 1, 3, 4), waves(ir.Float, 2, 1, 1, 3, 4), waves(ir.Float, 3, 1, 1, 3, 4)}
	causal := result(t, call{op: "Attention", in: in, attrs: []*ir.Attr{ir.IntAttr("is_causal", 1)}}, 0)
	window := result(t, call{op: "Attention", in: in, attrs: []*ir.Attr{ir.IntAttr("right_window_size", 0)}}, 0)
	triangle := numbers(ir.Bool, []int64{3, 3}, 1, 0, 0, 1, 1, 0, 1, 1, 1)
	masked := result(t, call{op: "Attention", in: append(slices.Clone(in), triangle)}, 0)
	near(t, "is_causal", causal, masked, 1e-7)
	near(t, "right_window_size", window, masked, 1e-7)
}

func TestInvalidAttentionsAreErrors(t *testing.T) {
	q, v := waves(ir.Float, 1, 1, 2, 3, 4), waves(ir.Float, 3, 1, 2, 5, 6)
	lengths := ir.ArrayOf([]int64{6}, 1)
	for name, c := range map[string]call{
		"rank":  {op: "Attention", in: []*ir.Array{q, waves(ir.Float, 1, 1, 5, 8), v}},
		"sizes": {op: "Attention", in: []*ir.Array{q, v, v}},
		"heads": {op: "Attention", in: []*ir.Array{waves(ir.Float, 1, 1, 3, 3, 6), v, v}},
		"no number of heads": {op: "Attention", in: []*ir.Array{waves(ir.Float, 1, 1, 3, 4),
			waves(ir.Float, 1, 1, 3, 4), waves(ir.Float, 1, 1, 3, 4)}},
		"types":         {op: "Attention", in: []*ir.Array{waves(ir.Double, 1, 1, 2, 3, 6), v, v}},
		"mask":          {op: "Attention", in: []*ir.Array{v, v, v, waves(ir.Float, 1, 3, 5)}},
		"past_key only": {op: "Attention", in: []*ir.Array{v, v, v, nil, v}},
		"stage": {op: "Attention", attrs: []*ir.Attr{ir.IntAttr("qk_matmul_output_mode", 4)},
			in: []*ir.Array{v, v, v}},
		"precision": {op: "Attention", attrs: []*ir.Attr{ir.IntAttr("softmax_precision", 7)}, in: []*ir.Array{v, v, v}},
		"window":    {op: "Attention", attrs: []*ir.Attr{ir.IntAttr("left_window_size", -2)}, in: []*ir.Array{v, v, v}},
		"length":    {op: "Attention", in: []*ir.Array{v, v, v, nil, nil, nil, lengths}},
	} {
		if _, err := c.run(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Softmax in float64 is near the one in float32.
func TestAttentionPrecisionAndStages(t *testing.T) {
	in := []*ir.Array{waves(ir.Float, 1, 1, 2, 3, 4), waves(ir.Float, 2, 1, 2, 5, 4), waves(ir.Float, 3, 1, 2, 5, 4)}
	plain := result(t, call{op: "Attention", in: in}, 0)
	for _, dt := range []ir.DType{ir.Float, ir.Float16, ir.BFloat16, ir.Double} {
		attrs := []*ir.Attr{ir.IntAttr("softmax_precision", int64(dt)), ir.IntAttr("qk_matmul_output_mode", 3)}
		c := call{op: "Attention", attrs: attrs, in: in, outputs: 4}
		near(t, fmt.Sprint(dt), result(t, c, 0), plain, 1e-6)
		weights, sum := result(t, c, 3), 0.0
		for _, w := range weights[:5] {
			sum += w
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("weights %v sum up to %v", weights[:5], sum)
		}
	}
}

// FlexAttention without graphs is Attention.
func TestFlexAttentionEqualsAttention(t *testing.T) {
	in := []*ir.Array{waves(ir.Double, 1, 1, 4, 3, 4), waves(ir.Double, 2, 1, 2, 5, 4), waves(ir.Double, 3, 1, 2, 5, 4)}
	flex := call{domain: "ai.onnx.preview", op: "FlexAttention", in: in}
	near(t, "Y", result(t, flex, 0), result(t, call{op: "Attention", in: in}, 0), 0)
}

// mcompress's Attention takes operands in other orders of axes, and broadcasts as MatMul and Add do.
func TestFusedAttentionPermutesAxes(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 2, 5, 12), waves(ir.Float, 2, 2, 7, 12), waves(ir.Float, 3, 2, 7, 16)
	scale := ir.FloatAttr("scale", float32(1/math.Sqrt(3)))
	want := result(t, call{op: "Attention", attrs: headAttrs(4, 4), in: []*ir.Array{q, k, v}}, 0)
	split := func(a *ir.Array) *ir.Array {
		return &ir.Array{DType: a.DType, Shape: []int64{2, a.Shape[1], 4, a.Shape[2] / 4}, Data: a.Data}
	}
	attrs := []*ir.Attr{scale, ir.IntsAttr("permQ", 0, 2, 1, 3), ir.IntsAttr("permK", 0, 2, 3, 1),
		ir.IntsAttr("permV", 0, 2, 1, 3), ir.IntsAttr("permY", 0, 2, 1, 3)}
	for _, dt := range []ir.DType{ir.Float, ir.Double} {
		in := []*ir.Array{cast(split(q), dt), cast(split(k), dt), cast(split(v), dt)}
		near(t, fmt.Sprint(dt), result(t, call{domain: "mcompress", op: "Attention", attrs: attrs, in: in,
			workers: 2}, 0), want, 1e-6)
	}
}

func cast(a *ir.Array, dt ir.DType) *ir.Array { return numbers(dt, a.Shape, values(a)...) }

// A mask may have more batches and queries than the scores.
func TestFusedAttentionBroadcasts(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 1, 3), waves(ir.Float, 2, 3, 4), waves(ir.Float, 3, 4, 2)
	mask := waves(ir.Float, 4, 2, 5, 4)
	got := result(t, call{domain: "mcompress", op: "Attention", in: []*ir.Array{q, k, v, mask}}, 0)
	scores := result(t, call{op: "MatMul", in: []*ir.Array{q, k}}, 0)
	var want []float64
	for i := range 10 {
		w, sum := make([]float64, 4), 0.0
		for j := range w {
			w[j] = math.Exp(scores[j] + values(mask)[i*4+j])
			sum += w[j]
		}
		for d := range 2 {
			y := 0.0
			for j := range w {
				y += w[j] / sum * values(v)[j*2+d]
			}
			want = append(want, y)
		}
	}
	near(t, "Y", got, want, 1e-6)
}
