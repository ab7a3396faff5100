package linear

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// sound is a valid call of each operator.
func sound() []call {
	f := func(shape ...int64) *ir.Array { return waves(ir.Float, 1, shape...) }
	i32 := func(shape ...int64) *ir.Array {
		return numbers(ir.Int32, shape, slices.Repeat([]float64{2}, int(op.Product(shape)))...)
	}
	i64 := func(shape ...int64) *ir.Array {
		return numbers(ir.Int64, shape, slices.Repeat([]float64{2}, int(op.Product(shape)))...)
	}
	two := []*ir.Attr{ir.IntAttr("num_heads", 2)}
	group := append(slices.Clone(two), ir.IntAttr("kv_num_heads", 1), ir.IntAttr("do_rotary", 1),
		ir.IntAttr("local_window_size", 2))
	perms := []*ir.Attr{ir.IntsAttr("permQ", 0, 2, 1, 3), ir.IntsAttr("permK", 0, 2, 3, 1),
		ir.IntsAttr("permV", 0, 2, 1, 3), ir.IntsAttr("permY", 0, 2, 1, 3)}
	return []call{
		{op: "MatMul", in: []*ir.Array{f(2, 3, 4), f(4, 2)}},
		{op: "Gemm", in: []*ir.Array{f(3, 4), f(4, 2), f(2)},
			attrs: []*ir.Attr{ir.IntAttr("transA", 0), ir.FloatAttr("beta", 2)}},
		{domain: microsoft, op: "FusedMatMul", in: []*ir.Array{f(3, 2, 4), f(2, 4, 5)},
			attrs: []*ir.Attr{ir.IntAttr("transBatchA", 1), ir.IntAttr("transB", 0)}},
		{domain: "mcompress", op: "MatMul", in: []*ir.Array{f(2, 4, 3), f(4, 2), f(2), f(2, 3, 2)},
			attrs: []*ir.Attr{ir.IntsAttr("permA", 0, 2, 1)}},
		{op: "Einsum", in: []*ir.Array{f(2, 3, 4), f(2, 4, 5), f(5, 3)}, attrs: equationAttr("bij,bjk,k...->b...")},
		{op: "Attention", in: []*ir.Array{f(2, 4, 3, 4), f(2, 2, 1, 4), f(2, 2, 1, 5), f(3, 4), f(2, 2, 3, 4),
			f(2, 2, 3, 5)}, outputs: 4},
		{op: "Attention", in: []*ir.Array{f(2, 3, 8), f(2, 4, 4), f(2, 4, 6), nil, nil, nil, i64(2)},
			attrs: headAttrs(4, 2, ir.IntAttr("is_causal", 1), ir.IntAttr("left_window_size", 1))},
		{domain: "ai.onnx.preview", op: "FlexAttention", in: []*ir.Array{f(2, 4, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 3)}},
		{domain: "mcompress", op: "Attention", in: []*ir.Array{f(2, 3, 2, 4), f(2, 5, 2, 4), f(2, 5, 2, 3),
			f(2, 1, 1, 5)}, attrs: perms},
		{domain: microsoft, op: "Attention", in: []*ir.Array{f(2, 3, 4), f(4, 24), f(24), i32(2, 5), f(2, 2, 2, 2, 4),
			f(1, 2, 3, 5)}, attrs: two, outputs: 2},
		{domain: microsoft, op: "MultiHeadAttention",
			in: []*ir.Array{f(2, 3, 8), f(2, 4, 8), f(2, 4, 6), f(22), i32(2), f(2, 1, 3, 6), f(2, 2, 2, 4),
				f(2, 2, 2, 3)}, attrs: two, outputs: 4},
		{domain: microsoft, op: "GroupQueryAttention",
			in: []*ir.Array{f(1, 1, 8), f(1, 1, 4), f(1, 1, 4), f(1, 1, 3, 4), f(1, 1, 3, 4), i32(1), i32(), f(4, 2),
				f(4, 2), nil, nil, f(2)}, attrs: group, outputs: 3},
		{op: "RotaryEmbedding", in: []*ir.Array{f(2, 3, 8), f(4, 2), f(4, 2), i64(2, 3)}, attrs: two},
		{domain: microsoft, op: "RotaryEmbedding", in: []*ir.Array{f(2, 2, 1, 4), i64(1), f(4, 2), f(4, 2)}},
		{op: "LinearAttention", in: []*ir.Array{f(2, 3, 8), f(2, 3, 4), f(2, 3, 6), f(2, 2, 2, 3), f(2, 3, 2),
			f(2, 3, 1)}, attrs: headAttrs(4, 2), outputs: 2},
		{op: "CausalConvWithState", in: []*ir.Array{f(2, 3, 4), f(3, 1, 3), f(3), f(2, 3, 2)}, outputs: 2},
		{op: "SwiGLU", in: []*ir.Array{f(2, 3), f(2, 3)}},
	}
}

func TestValidCallsRun(t *testing.T) {
	for _, c := range sound() {
		if _, err := c.run(); err != nil {
			t.Errorf("%s.%s: %v", c.domain, c.op, err)
		}
	}
}

// FuzzCalls makes random changes to valid calls, and runs those that are still valid: nothing may panic.
func FuzzCalls(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, c := range sound() {
			for range r.IntN(3) + 1 {
				disturb(r, &c)
			}
			if text := optest.Panic(optest.Row(Ops(), c.node()), c.node()); text != "" {
				t.Errorf("%s.%s of %v: panic: %s", c.domain, c.op, c.in, text)
			}
		}
	})
}

func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.IntN(len(xs))] }

// disturb changes an input's type, shape or data, removes it, or changes an attribute.
func disturb(r *rand.Rand, c *call) {
	i := r.IntN(len(c.in))
	a := &ir.Array{DType: ir.Float, Shape: []int64{2}}
	if c.in[i] != nil {
		a.DType, a.Shape = c.in[i].DType, slices.Clone(c.in[i].Shape)
	}
	switch axis := r.IntN(len(a.Shape) + 1); r.IntN(8) {
	case 0:
		c.in[i] = nil
		return
	case 1:
		c.attrs = append(slices.Clone(c.attrs), pick(r,
			ir.IntAttr(pick(r, "num_heads", "q_num_heads", "kv_num_heads", "is_causal", "unidirectional",
				"left_window_size", "transA", "transB", "rotary_embedding_dim", "interleaved"),
				pick[int64](r, 0, 1, 2, 3, -1, 1<<62)),
			ir.IntsAttr(pick(r, "permA", "permB", "permQ", "permV", "permY", "qkv_hidden_sizes"),
				pick(r, []int64{0, 1}, []int64{2, 1, 0}, []int64{0, 9}, []int64{1 << 62, 0, 0})...),
			ir.FloatAttr(pick(r, "scale", "softcap", "alpha", "beta"), pick[float32](r, 0, -1, 2)),
			equationAttr(pick(r, "bij,bjk,kj", "...,...,...", "bij,bjk->b", "ab"))[0]))
		return
	case 2:
		for k := range c.in { // all at once, so that they still match
			if c.in[k] != nil && c.in[k].DType == ir.Float && op.IsKnown(c.in[k]) {
				c.in[k] = numbers(ir.Float16, c.in[k].Shape, values(c.in[k])...)
			}
		}
		return
	case 3:
		a.DType = pick(r, ir.Double, ir.Float16, ir.Int32, ir.Int64, ir.Bool, ir.String, ir.Int4)
	case 4:
		a.Shape = slices.Insert(a.Shape, axis, pick[int64](r, 1, 2, 0))
	case 5:
		if axis < len(a.Shape) {
			a.Shape = slices.Delete(a.Shape, axis, axis+1)
		}
	default:
		if axis < len(a.Shape) {
			a.Shape[axis] = pick[int64](r, 0, 1, 2, 3, 4, 5, -1, 1<<62)
		}
	}
	if a.Spec().Valid() == nil && a.Bytes() < 1<<20 {
		a = ir.NewArray(a.DType, a.Shape...)
		for k := range a.Data {
			a.Data[k] = byte(r.IntN(4))
		}
	}
	c.in[i] = a
}
