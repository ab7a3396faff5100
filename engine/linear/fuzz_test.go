package linear

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// FuzzShapes asks every operator for the shapes of inputs and attributes that may not fit. Where they
// do, it runs: nothing may panic.
func FuzzShapes(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, row := range Ops() {
			for range 20 {
				hostile(t, r, row)
			}
		}
	})
}

// pick is one of xs, mostly an early one.
func pick[T any](r *rand.Rand, xs ...T) T { return xs[min(r.IntN(len(xs)), r.IntN(2*len(xs)))] }

func hostile(t *testing.T, r *rand.Rand, row op.Op) {
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("%s.%s: panic: %v", row.Domain, row.Type, v)
		}
	}()
	sizes := []int64{2, 4, 1, 3, 6, 12, 0, 8}
	base := make([]int64, 5)
	for i := range base {
		base[i] = pick(r, sizes...)
	}
	dt := pick(r, ir.Float, ir.Float16, ir.Double, ir.BFloat16, ir.Int32, ir.Int64)
	in := make([]*ir.Array, r.IntN(9)+1)
	for i := range in {
		in[i] = operandFor(r, base, dt)
	}
	n := op.NewNode(ir.OpID{Domain: row.Domain, Type: row.Type}, 1000, attributes(r), nil)
	n.NumIn, n.Const = len(in), make([]bool, len(in))
	for range r.IntN(4) + 1 {
		n.Wanted = append(n.Wanted, r.IntN(3) > 0)
	}
	specs, err := row.Shape(n, in)
	if err != nil {
		return
	}
	c := &op.Call{Node: n, In: in, Out: make([]*ir.Array, n.NumOut()), Pool: op.NewPool(1)}
	defer c.Pool.Close()
	for i := range c.Out {
		if i >= len(specs) || !n.Wanted[i] {
			continue
		}
		if specs[i].Valid() != nil || specs[i].Bytes() > 1<<20 {
			return
		}
		c.Out[i] = ir.NewArray(specs[i].DType, specs[i].Shape...)
	}
	for _, a := range in {
		if a != nil && a.Data == nil && a.Elems() > 0 {
			return // a type alone
		}
	}
	if row.Work != nil {
		bytes := row.Work(n, in, 1)
		if bytes > 1<<24 {
			return
		}
		c.Work = ir.AlignedBytes(bytes)
	}
	if c.Out[0] != nil {
		_ = row.Run(c)
	}
}

// operandFor is an input whose axes are mostly those of base.
func operandFor(r *rand.Rand, base []int64, dt ir.DType) *ir.Array {
	if r.IntN(6) == 0 {
		return nil
	}
	if r.IntN(4) == 0 {
		dt = pick(r, ir.Int32, ir.Int64, ir.Bool, ir.Float, ir.String)
	}
	shape := make([]int64, pick(r, 3, 4, 2, 1, 0, 5))
	for i := range shape {
		shape[i] = base[pick(r, i, r.IntN(len(base)))]
	}
	a := &ir.Array{DType: dt, Shape: shape}
	switch {
	case r.IntN(12) == 0 && len(shape) > 0:
		shape[0] = pick(r, -1, int64(1)<<40, 1<<62)
	case dt == ir.String:
		a.Text = make([]string, a.Elems())
	case r.IntN(12) > 0:
		a.Data = ir.NewArray(dt, shape...).Data
		for i := range a.Data {
			a.Data[i] = byte(r.IntN(3))
		}
	}
	return a
}

func attributes(r *rand.Rand) []*ir.Attr {
	var attrs []*ir.Attr
	for _, name := range []string{
		"num_heads", "q_num_heads", "kv_num_heads", "is_causal", "unidirectional", "do_rotary", "interleaved", "rotary_embedding_dim",
		"left_window_size", "local_window_size", "softmax_precision", "qk_matmul_output_mode", "transA", "transB", "transBatchA", "transBatchB",
	} {
		if r.IntN(2) == 0 {
			attrs = append(attrs, ir.IntAttr(name, pick[int64](r, 1, 2, 0, 3, 4, -1, 1<<62)))
		}
	}
	for _, name := range []string{"permA", "permB", "permQ", "permK", "permV", "permY", "qkv_hidden_sizes"} {
		if r.IntN(6) == 0 {
			attrs = append(attrs, ir.IntsAttr(name, pick(r, [][]int64{{0, 2, 1}, {1, 0}, {0, 2, 1, 3}, {2, 2, 2}, {0, 9}, {-1}}...)...))
		}
	}
	for _, name := range []string{"scale", "softcap", "alpha", "beta"} {
		if r.IntN(4) == 0 {
			attrs = append(attrs, ir.FloatAttr(name, pick[float32](r, 1, 0, 2, -1)))
		}
	}
	attrs = append(attrs, ir.StringAttr("equation", pick(r, "abc,acd->abd", "abc,acd,ade", "...ab,...bc", "aab", "a,b->ba", "...a->...", "abcd,bdef")))
	attrs = append(attrs, ir.StringAttr("update_rule", pick(r, "linear", "gated", "delta", "gated_delta", "none")))
	return attrs
}
