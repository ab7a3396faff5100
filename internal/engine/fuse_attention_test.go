package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A pattern is attention as an exporter writes it. Q, K and V are the graph's inputs, of shape [batch, tokens,
// heads·size].
type pattern struct {
	name  string
	scale func(b *builder, x *ir.Value) *ir.Value // of the scores
	early func(b *builder, x *ir.Value) *ir.Value // of Q and K
	keys  [][]int64                               // permutations of K
	mask  bool
	after func(b *builder, x *ir.Value) *ir.Value // of the masked scores
	late  func(b *builder, x *ir.Value) *ir.Value // of the weights
	half  bool                                    // all but the softmax is in float16
	fused bool
}

// A builder builds a graph node by node.
type builder struct{ *ir.Graph }

func (b *builder) op(name string, in ...*ir.Value) *ir.Value { return b.Insert(nil, name, in) }

func (b *builder) input(name string, dt ir.DType, shape ...string) *ir.Value {
	v := b.AddValue(name)
	v.Type = &ir.Type{Elem: dt}
	for _, s := range shape {
		d := ir.Dim{Param: s}
		if _, err := fmt.Sscan(s, &d.N); err == nil {
			d.Param = ""
		}
		v.Type.Shape = append(v.Type.Shape, d)
	}
	b.Inputs = append(b.Inputs, v)
	return v
}

func (b *builder) output(v *ir.Value) { b.Outputs = append(b.Outputs, v) }

func (b *builder) floats(shape []int64, x ...float32) *ir.Value {
	return b.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape},
		Source: ir.Mem(ir.ArrayOf(x, shape...).Data)})
}

func (b *builder) ints(x ...int64) *ir.Value {
	return b.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(x))}},
		Source: ir.Mem(ir.ArrayOf(x, int64(len(x))).Data)})
}

func (b *builder) transpose(x *ir.Value, perm ...int64) *ir.Value {
	return b.Insert(nil, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", perm...))
}

func (b *builder) cast(x *ir.Value, to ir.DType) *ir.Value {
	return b.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(to)))
}

func times(op string, c float32, shape ...int64) func(*builder, *ir.Value) *ir.Value {
	return func(b *builder, x *ir.Value) *ir.Value { return b.op(op, x, b.floats(shape, c)) }
}

const testHeads, testSize = 3, 8

func (p pattern) model() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	side := func(name string, perms ...[]int64) *ir.Value {
		x := b.input(name, ir.Float, "batch", name+"_tokens", "24")
		if p.half {
			x = b.cast(x, ir.Float16)
		}
		x = b.op("Reshape", x, b.ints(0, 0, testHeads, testSize))
		for _, perm := range perms {
			x = b.transpose(x, perm...)
		}
		return x
	}
	q, k, v := side("q", []int64{0, 2, 1, 3}), side("k", p.keys...), side("v", []int64{0, 2, 1, 3})
	if p.early != nil {
		q, k = p.early(b, q), p.early(b, k)
	}
	x := b.op("MatMul", q, k)
	if p.scale != nil {
		x = p.scale(b, x)
	}
	if p.mask {
		x = b.op("Add", b.input("mask", ir.Float, "batch", "1", "mask_rows", "k_tokens"), x)
	}
	if p.after != nil {
		x = p.after(b, x)
	}
	x = b.Insert(nil, "Softmax", []*ir.Value{x}, ir.IntAttr("axis", -1))
	if p.late != nil {
		x = p.late(b, x)
	}
	y := b.transpose(b.op("MatMul", x, v), 0, 2, 1, 3)
	b.output(b.op("Reshape", y, b.ints(0, 0, testHeads*testSize)))
	return m
}

func patterns() []pattern {
	once, twice := [][]int64{{0, 2, 3, 1}}, [][]int64{{0, 2, 1, 3}, {0, 1, 3, 2}}
	return []pattern{
		{name: "product alone", keys: once, fused: true},
		{name: "divided, masked", keys: once, scale: times("Div", 3), mask: true, fused: true},
		{name: "multiplied", keys: twice, scale: times("Mul", 0.3, 1, 1), fused: true},
		{name: "scaled early", keys: once, early: times("Mul", 0.6), mask: true, fused: true},
		{name: "scaled by a computed value", keys: once, fused: true, early: func(b *builder, x *ir.Value) *ir.Value {
			size := b.cast(b.op("Slice", b.op("Shape", x), b.ints(1), b.ints(2)), ir.Float)
			return b.op("Div", x, b.op("Sqrt", size))
		}},
		{name: "divided early", keys: twice, early: times("Div", 2, 1), fused: true},
		{name: "dropout", keys: once, fused: true,
			late: func(b *builder, x *ir.Value) *ir.Value { return b.op("Dropout", x) }},
		{name: "softmax in float32", keys: once, half: true, fused: true, mask: true,
			scale: func(b *builder, x *ir.Value) *ir.Value { return times("Div", 3)(b, b.cast(x, ir.Float)) },
			late:  func(b *builder, x *ir.Value) *ir.Value { return b.cast(x, ir.Float16) }},
		{name: "scale of higher rank", keys: once, scale: times("Mul", 0.3, 1, 1, 1)},
		{name: "masked by Where", keys: once, after: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Where", b.op("Greater", x, b.floats(nil, 0.1)), x, b.floats(nil, -1e4))
		}},
		{name: "scores are read", keys: once, scale: func(b *builder, x *ir.Value) *ir.Value {
			b.output(b.op("Relu", x))
			return x
		}},
		{name: "scores are an output", keys: once, scale: func(b *builder, x *ir.Value) *ir.Value {
			b.output(x)
			return x
		}},
	}
}

// inputs fills the inputs of a pattern with varied numbers.
func (p pattern) inputs(batch, queries, keys int64) map[string]*ir.Array {
	in := map[string]*ir.Array{
		"q": ir.NewArray(ir.Float, batch, queries, testHeads*testSize),
		"k": ir.NewArray(ir.Float, batch, keys, testHeads*testSize),
		"v": ir.NewArray(ir.Float, batch, keys, testHeads*testSize),
	}
	if p.mask {
		in["mask"] = ir.NewArray(ir.Float, batch, 1, 1, keys)
	}
	for name, a := range in {
		for i := range ir.View[float32](a) {
			ir.View[float32](a)[i] = float32(math.Sin(float64(i*i) + float64(len(name)) + float64(name[0])))
		}
	}
	return in
}

func TestAttentionFusion(t *testing.T) {
	for _, p := range patterns() {
		t.Run(p.name, func(t *testing.T) {
			in := p.inputs(2, 5, 7)
			want, _ := runModel(t, p.model(), in, engine.Options{NoFusion: true})
			got, steps := runModel(t, p.model(), in, engine.Options{Workers: 2})
			tol := tolerance{Relative: 1e-5, Absolute: 1e-6}
			if p.half {
				tol = tolerance{Relative: 1e-2, Absolute: 1e-3} // unfused nodes round scores and weights too
			}
			for name, w := range want {
				if err := tol.differ(w, got[name]); err != nil {
					t.Errorf("output %q: %v", name, err)
				}
			}
			if slices.Contains(steps, "mcompress.Attention") != p.fused {
				t.Errorf("steps: %v", steps)
			}
			if p.fused && slices.Contains(steps, "Transpose") && !slices.Contains(steps, "Sqrt") {
				t.Errorf("a Transpose was not fused: %v", steps)
			}
		})
	}
}

// The memory of attention is linear in the number of tokens: scores alone would need 64 times as much for 8 times the
// tokens.
func TestAttentionMemoryIsLinear(t *testing.T) {
	p := pattern{keys: [][]int64{{0, 2, 3, 1}}, scale: times("Div", 3), mask: true}
	e, err := engine.Open(t.Context(), p.model(), engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	arena := func(tokens int64) int64 {
		in := map[string]ir.Spec{"mask": {DType: ir.Float, Shape: []int64{1, 1, 1, tokens}}}
		for _, name := range []string{"q", "k", "v"} {
			in[name] = ir.Spec{DType: ir.Float, Shape: []int64{1, tokens, testHeads * testSize}}
		}
		u, err := e.Usage(in)
		if err != nil {
			t.Fatal(err)
		}
		return u.Plan.Size
	}
	if a, b := arena(1<<12), arena(1<<15); b > 8*a {
		t.Errorf("8 times the tokens use %d bytes, %d before", b, a)
	}
}

// runModel returns the outputs, and the operators that ran.
func runModel(t *testing.T, m *ir.Model, in map[string]*ir.Array, o engine.Options) (map[string]*ir.Array, []string) {
	t.Helper()
	e, err := engine.Open(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out, err := e.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]ir.Spec{}
	for name, a := range in {
		specs[name] = a.Spec()
	}
	u, err := e.Usage(specs)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, s := range u.Steps {
		steps = append(steps, s.Op)
	}
	return out, steps
}
