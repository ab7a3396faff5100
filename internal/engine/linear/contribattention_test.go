package linear

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// com.microsoft's operators agree with ONNX's Attention on the same heads.

func TestMultiHeadAttentionEqualsAttention(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 2, 5, 12), waves(ir.Float, 2, 2, 7, 12), waves(ir.Float, 3, 2, 7, 20)
	want := result(t, call{op: "Attention", attrs: headAttrs(4, 4), in: []*ir.Array{q, k, v}}, 0)
	attrs := []*ir.Attr{ir.IntAttr("num_heads", 4)}
	packed := call{domain: microsoft, op: "MultiHeadAttention", attrs: attrs, in: []*ir.Array{q, k, v}, workers: 2}
	near(t, "packed", result(t, packed, 0), want, 0)
	split := call{domain: microsoft, op: "MultiHeadAttention", attrs: attrs,
		in: []*ir.Array{q, heads(k, 4), heads(v, 4)}}
	near(t, "split", result(t, split, 0), want, 0)
}

func TestMultiHeadAttentionPacked(t *testing.T) {
	x := waves(ir.Float, 1, 2, 5, 3, 3, 4) // [batch, tokens, heads, Q and K and V, size]
	var parts [3][]float64
	for i, v := range values(x) {
		parts[i/4%3] = append(parts[i/4%3], v)
	}
	var in []*ir.Array
	for _, p := range parts {
		in = append(in, numbers(ir.Float, []int64{2, 5, 12}, p...))
	}
	attrs := []*ir.Attr{ir.IntAttr("num_heads", 3)}
	want := result(t, call{domain: microsoft, op: "MultiHeadAttention", attrs: attrs, in: in}, 0)
	near(t, "output", result(t, call{domain: microsoft, op: "MultiHeadAttention", attrs: attrs,
		in: []*ir.Array{x, nil, nil}}, 0), want, 0)
}

func TestMultiHeadAttentionWithBiasAndPast(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Float16} {
		k, v := waves(dt, 2, 1, 2, 6, 4), waves(dt, 3, 1, 2, 6, 4)
		pack := func(a *ir.Array) *ir.Array { // back to [batch, tokens, heads·size]
			back := heads(&ir.Array{DType: dt, Shape: []int64{1, 2, a.Shape[2] * 4}, Data: a.Data}, a.Shape[2])
			return &ir.Array{DType: dt, Shape: []int64{1, a.Shape[2], 8}, Data: back.Data}
		}
		q := waves(dt, 1, 1, 2, 8)
		want := call{op: "Attention", attrs: headAttrs(2, 2),
			in: []*ir.Array{q, pack(tokens(k, 4, 6)), pack(tokens(v, 4, 6)), nil, tokens(k, 0, 4), tokens(v, 0, 4)}}
		less := func(a *ir.Array) *ir.Array { // a - 1: the operand before its bias of 1
			x := values(a)
			for i := range x {
				x[i]--
			}
			return numbers(ir.Float, a.Shape, x...)
		}
		got := call{domain: microsoft, op: "MultiHeadAttention", attrs: []*ir.Attr{ir.IntAttr("num_heads", 2)}}
		bias := numbers(ir.Float, []int64{24}, slices.Repeat([]float64{1}, 24)...)
		if dt == ir.Float {
			got.in = []*ir.Array{less(q), less(want.in[1]), less(want.in[2]), bias, nil, nil, want.in[4], want.in[5]}
		} else {
			got.in = []*ir.Array{q, want.in[1], want.in[2], nil, nil, nil, want.in[4], want.in[5]}
		}
		near(t, "output", result(t, got, 0), result(t, want, 0), 1e-3)
		near(t, "present_key", result(t, got, 1), values(k), 1e-6)
		near(t, "present_value", result(t, got, 2), values(v), 1e-6)
	}
}

// The four equivalent forms of a mask.
func TestEquivalentMasks(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 2, 3, 8), waves(ir.Float, 2, 2, 4, 8), waves(ir.Float, 3, 2, 4, 8)
	by := func(shape []int64, x ...float64) []float64 {
		in := []*ir.Array{q, k, v, nil, numbers(ir.Int32, shape, x...)}
		return result(t, call{domain: microsoft, op: "MultiHeadAttention",
			attrs: []*ir.Attr{ir.IntAttr("num_heads", 2)}, in: in}, 0)
	}
	ends := by([]int64{2}, 3, 2)
	near(t, "flags per key", by([]int64{2, 4}, 1, 1, 1, 0, 1, 1, 0, 0), ends, 0)
	rows := slices.Concat(slices.Repeat([]float64{1, 1, 1, 0}, 3), slices.Repeat([]float64{1, 1, 0, 0}, 3))
	near(t, "flags per query and key", by([]int64{2, 3, 4}, rows...), ends, 0)
	near(t, "ends and beginnings", by([]int64{4}, 3, 2, 0, 0), ends, 0)
	inf := math.Inf(-1)
	bias := numbers(ir.Float, []int64{2, 1, 1, 4}, 0, 0, 0, inf, 0, 0, inf, inf)
	want := result(t, call{op: "Attention", attrs: headAttrs(2, 2), in: []*ir.Array{q, k, v, bias}}, 0)
	near(t, "Attention", ends, want, 1e-6)
}

// Causal attention adds the least float32 to the scores of later keys, as ONNX Runtime 1.31.1 does: a bias that is as
// low before them leaves all keys equal, and the scores that are an output have the sums.
func TestCausalAttentionWithBias(t *testing.T) {
	least, lower := -math.MaxFloat32, math.Inf(-1)
	q, k, v := waves(ir.Float, 1, 1, 3, 4), waves(ir.Float, 2, 1, 3, 4), waves(ir.Float, 3, 1, 3, 4)
	c := call{domain: microsoft, op: "MultiHeadAttention", in: []*ir.Array{q, k, v}, outputs: 4,
		attrs: []*ir.Attr{ir.IntAttr("num_heads", 1), ir.IntAttr("unidirectional", 1)}}
	scores := result(t, c, 3)
	for i, want := range []float64{0, least, least, 0, 0, least, 0, 0, 0} {
		if got := scores[i]; want != 0 && got != want || want == 0 && math.Abs(got) > 10 {
			t.Errorf("score %d is %v, want %v", i, got, want)
		}
	}
	of := func(row ...float64) []float64 {
		bias := numbers(ir.Float, []int64{1, 1, 3, 3}, slices.Concat(row, row, row)...)
		c.in = []*ir.Array{q, k, v, nil, nil, bias}
		return result(t, c, 0)
	}
	values := values(v)
	mean := make([]float64, 4)
	for i, x := range values {
		mean[i%4] += x / 3
	}
	near(t, "a bias of the least float32 at the only key", of(least, 0, 0)[:4], mean, 1e-6)
	near(t, "the same at every key", of(least, least, least)[:4], values[:4], 1e-6)
	near(t, "zero", of(0, 0, 0)[:4], values[:4], 0)
	if got := of(lower, lower, lower)[0]; got == got {
		t.Errorf("every key has a bias of -Inf: %v, want NaN", got)
	}
}

// com.microsoft's Attention first multiplies by the weights of queries, keys and values.
func TestSelfAttentionProjects(t *testing.T) {
	x, w, bias := waves(ir.Float, 1, 2, 5, 6), waves(ir.Float, 2, 6, 24), waves(ir.Float, 3, 24)
	all := result(t, call{op: "Gemm", in: []*ir.Array{numbers(ir.Float, []int64{10, 6}, values(x)...), w, bias}}, 0)
	var parts [3][]float64
	for i, v := range all {
		parts[i/8%3] = append(parts[i/8%3], v)
	}
	var in []*ir.Array
	for _, p := range parts {
		in = append(in, numbers(ir.Float, []int64{2, 5, 8}, p...))
	}
	want := call{op: "Attention", attrs: headAttrs(2, 2, ir.IntAttr("is_causal", 1)), in: in}
	attrs := []*ir.Attr{ir.IntAttr("num_heads", 2), ir.IntAttr("unidirectional", 1)}
	got := call{domain: microsoft, op: "Attention", attrs: attrs, in: []*ir.Array{x, w, bias}, workers: 2}
	near(t, "output", result(t, got, 0), result(t, want, 0), 1e-6)
	got.consts = []int{1}
	near(t, "with prepacked weights", result(t, got, 0), result(t, want, 0), 1e-6)
	near(t, "present", result(t, got, 1), slices.Concat(result(t, want, 1), result(t, want, 2)), 1e-6)
}

func groupCall(more []*ir.Attr, in ...*ir.Array) call {
	attrs := append(more, ir.IntAttr("num_heads", 4), ir.IntAttr("kv_num_heads", 2))
	return call{domain: microsoft, op: "GroupQueryAttention", attrs: attrs, in: in, outputs: 3}
}

func TestGroupQueryAttentionIsCausal(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 1, 5, 16), waves(ir.Float, 2, 1, 5, 8), waves(ir.Float, 3, 1, 5, 8)
	length, total := ir.ArrayOf([]int32{4}, 1), ir.ArrayOf([]int32{5}, 1)
	want := call{op: "Attention", attrs: headAttrs(4, 2, ir.IntAttr("is_causal", 1)), in: []*ir.Array{q, k, v}}
	near(t, "prompt", result(t, groupCall(nil, q, k, v, nil, nil, length, total), 0), result(t, want, 0), 1e-6)

	keys, vals := heads(k, 2), heads(v, 2)
	part := func(a *ir.Array, from, to int64) *ir.Array { // of [batch, tokens, hidden]
		w := a.Shape[2]
		return numbers(ir.Float, []int64{1, to - from, w}, values(a)[from*w:to*w]...)
	}
	step := groupCall(nil, part(q, 4, 5), part(k, 4, 5), part(v, 4, 5), tokens(keys, 0, 4), tokens(vals, 0, 4),
		length, total)
	near(t, "step", result(t, step, 0), result(t, want, 0)[64:], 1e-6)
	near(t, "present_key", result(t, step, 1), values(keys), 0)
	near(t, "present_value", result(t, step, 2), values(vals), 0)
}

// The rotated keys and queries of a prompt equal those of RotaryEmbedding.
func TestGroupQueryAttentionRotates(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 1, 3, 16), waves(ir.Float, 2, 1, 3, 8), waves(ir.Float, 3, 1, 3, 8)
	cos, sin := waves(ir.Float, 4, 6, 2), waves(ir.Float, 5, 6, 2)
	turned := func(a *ir.Array, n int64) *ir.Array {
		c := call{op: "RotaryEmbedding", attrs: []*ir.Attr{ir.IntAttr("num_heads", n)},
			in: []*ir.Array{a, cos, sin, ir.ArrayOf([]int64{0, 1, 2}, 1, 3)}}
		return numbers(ir.Float, a.Shape, result(t, c, 0)...)
	}
	length, total := ir.ArrayOf([]int32{2}, 1), ir.ArrayOf([]int32{3}, 1)
	want := groupCall(nil, turned(q, 4), turned(k, 2), v, nil, nil, length, total)
	got := groupCall([]*ir.Attr{ir.IntAttr("do_rotary", 1)}, q, k, v, nil, nil, length, total, cos, sin)
	near(t, "output", result(t, got, 0), result(t, want, 0), 1e-6)
}

func TestGroupQueryAttentionChecksLengths(t *testing.T) {
	q, k := waves(ir.Float, 1, 1, 1, 16), waves(ir.Float, 2, 1, 1, 8)
	past := waves(ir.Float, 3, 1, 2, 4, 4)
	for _, length := range []int32{-1, 5, 100} {
		in := []*ir.Array{q, k, k, past, past, ir.ArrayOf([]int32{length}, 1), ir.ArrayOf([]int32{5}, 1)}
		if _, err := groupCall(nil, in...).run(); err == nil {
			t.Errorf("seqlens_k %d in a cache of 5: no error", length)
		}
	}
}

// A sliding cache has the layout that ONNX Runtime documents, whatever the number of tokens of a step, and the outputs
// of a full cache.
func TestGroupQueryAttentionSlidingCache(t *testing.T) {
	const all, window, capacity = 13, 4, 6
	part := func(a *ir.Array, from, to int64) *ir.Array { // of [1, tokens, hidden]
		w := a.Shape[2]
		return numbers(ir.Float, []int64{1, to - from, w}, values(a)[from*w:to*w]...)
	}
	run := func(in [3]*ir.Array, past [2]*ir.Array, total int64, attrs ...*ir.Attr) call {
		attrs = append(attrs, ir.IntAttr("local_window_size", window))
		return groupCall(attrs, in[0], in[1], in[2], past[0], past[1], ir.ArrayOf([]int32{int32(total - 1)}, 1),
			ir.ArrayOf([]int32{int32(total)}, 1))
	}
	in := [3]*ir.Array{waves(ir.Float, 1, 1, all, 16), waves(ir.Float, 2, 1, all, 8), waves(ir.Float, 3, 1, all, 8)}
	want, keys := result(t, run(in, [2]*ir.Array{}, all), 0), heads(in[1], 2)
	held := []int64{0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4} // by the number of tokens
	for _, step := range []int64{1, 3, 8, all} {
		past := [2]*ir.Array{ir.NewArray(ir.Float, 1, 2, capacity, 4), ir.NewArray(ir.Float, 1, 2, capacity, 4)}
		for from := int64(0); from < all; from += step {
			to := min(from+step, all)
			c := run([3]*ir.Array{part(in[0], from, to), part(in[1], from, to), part(in[2], from, to)}, past, to,
				ir.IntAttr("sliding_window_cache", 1))
			near(t, "output", result(t, c, 0), want[from*16:to*16], 1e-6)
			for i := range past {
				past[i] = numbers(ir.Float, past[i].Shape, result(t, c, 1+i)...)
			}
			near(t, "present_key", values(tokens(past[0], 0, held[to])), values(tokens(keys, to-held[to], to)), 0)
		}
	}
	small := ir.NewArray(ir.Float, 1, 2, window-1, 4)
	if _, err := run(in, [2]*ir.Array{small, small}, all, ir.IntAttr("sliding_window_cache", 1)).run(); err == nil {
		t.Error("a cache smaller than the window: no error")
	}
}

// A mask by positions up to a maximum length equals its part for the queries, which are the last positions, and the
// keys.
func TestSelfAttentionMaskByPositions(t *testing.T) {
	x, w, bias, past := waves(ir.Float, 1, 2, 3, 6), waves(ir.Float, 2, 6, 24), waves(ir.Float, 3, 24),
		waves(ir.Float, 4, 2, 2, 2, 1, 4)
	by := func(shape []int64, mask []float64) call {
		attrs := []*ir.Attr{ir.IntAttr("num_heads", 2)}
		return call{domain: microsoft, op: "Attention", attrs: attrs,
			in: []*ir.Array{x, w, bias, numbers(ir.Int32, shape, mask...), past}}
	}
	const queries, keys, length = 3, 4, 6
	var all, part []float64
	for i := range 2 * length * length {
		flag := float64(i * 7 % 5 % 2)
		all = append(all, flag)
		if q, k := i/length%length, i%length; q >= keys-queries && q < keys && k < keys {
			part = append(part, flag)
		}
	}
	want := result(t, by([]int64{2, queries, keys}, part), 0)
	near(t, "output", result(t, by([]int64{2, 1, length, length}, all), 0), want, 0)
	if _, err := by([]int64{2, 1, 3, 3}, all[:18]).run(); err == nil {
		t.Error("a maximum length below the number of keys: no error")
	}
}

// Causal attention with flags has the same result whether later keys are skipped or, since the scores or a filter near
// the largest float32 require it, masked like the others. A query all of whose keys are filtered attends to later keys
// too in the second case only.
func TestCausalFlags(t *testing.T) {
	q, k, v := waves(ir.Float, 1, 1, 9, 8), waves(ir.Float, 2, 1, 9, 8), waves(ir.Float, 3, 1, 9, 8)
	by := func(filter float32, outputs int, flags ...float64) []float64 {
		attrs := []*ir.Attr{ir.IntAttr("num_heads", 2), ir.IntAttr("unidirectional", 1),
			ir.FloatAttr("mask_filter_value", filter)}
		in := []*ir.Array{q, k, v, nil, numbers(ir.Int32, []int64{1, 9}, flags...)}
		return result(t, call{domain: microsoft, op: "MultiHeadAttention", attrs: attrs, in: in, outputs: outputs}, 0)
	}
	late, first := []float64{1, 1, 1, 0, 1, 1, 0, 1, 1}, []float64{0, 1, 1, 1, 1, 1, 1, 1, 1}
	for _, filter := range []float32{-10000, -10, 0} {
		for _, flags := range [][]float64{late, first} {
			near(t, "skipped", by(filter, 1, flags...), by(filter, 4, flags...), 0)
		}
	}
	near(t, "filter near the largest float32", by(-math.MaxFloat32, 1, first...), by(-math.MaxFloat32, 4, first...), 0)
	if a, b := by(-10000, 1, first...)[0], values(v)[0]; math.Abs(a-b) > 1e-6 {
		t.Errorf("the first query attends to the only key before it: %v, want %v", a, b)
	}
	if a, b := by(-math.MaxFloat32, 1, first...)[0], values(v)[0]; math.Abs(a-b) < 1e-3 {
		t.Errorf("the first query attends to all keys alike, as all are filtered: %v", a)
	}
}
