package prune_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/report"
)

// attentions are graphs of one attention of 4 heads of 4 channels with 2 key and value heads where they are grouped,
// from x of 2×5×8 to its output projection, o.
var attentions = []struct {
	name   string
	opset  int64
	groups int64 // key and value heads
	draw   func(d *drawing, x *ir.Value) *ir.Value
}{
	{"spelled out", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		q, k, v := d.projected(x, "q", 4), d.projected(x, "k", 4), d.projected(x, "v", 4)
		return d.merged(d.scored(d.split(q, 4), d.split(k, 4), d.split(v, 4)))
	}},
	{"packed, of unknown batch size", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		x.Type.Shape[0] = ir.Dim{N: -1}
		qkv := d.node("Reshape", nil, d.node("MatMul", nil, x, d.byHead("qkv", 8, 3, 4)), d.ints(0, 5, 3, 4, 4))
		part := func(i int64) *ir.Value {
			return d.node("Squeeze", nil, d.node("Slice", nil, d.node("Transpose", ints("perm", 2, 0, 3, 1, 4), qkv), d.ints(i),
				d.ints(i+1), d.ints(0)), d.ints(0))
		}
		return d.merged(d.scored(part(0), part(1), part(2)))
	}},
	{"keys repeated, rotary, target computed", 17, 2, func(d *drawing, x *ir.Value) *ir.Value {
		x.Type.Shape[0], x.Type.Shape[1] = ir.Dim{N: -1, Param: "b"}, ir.Dim{N: -1, Param: "s"}
		size := func(v *ir.Value, i int64) *ir.Value { return d.node("Gather", nil, d.node("Shape", nil, v), d.ints(i)) }
		split := func(v *ir.Value) *ir.Value {
			v = d.node("Reshape", nil, v, d.node("Concat", number("axis", 0), size(x, 0), size(x, 1), d.ints(-1), d.ints(4)))
			v = d.node("Transpose", ints("perm", 0, 2, 1, 3), v)
			turned := d.node("Concat", number("axis", -1),
				d.node("Neg", nil, d.node("Slice", nil, v, d.ints(2), d.ints(4), d.ints(3))),
				d.node("Slice", nil, v, d.ints(0), d.ints(2), d.ints(3)))
			return d.node("Add", nil, v, turned)
		}
		repeat := func(v *ir.Value) *ir.Value {
			shape := d.node("Concat", number("axis", 0), size(v, 0), size(v, 1), d.ints(2), size(v, 2), size(v, 3))
			e := d.node("Expand", nil, d.node("Unsqueeze", nil, v, d.ints(2)), shape)
			return d.node("Reshape", nil, e, d.node("Concat", number("axis", 0), size(v, 0),
				d.node("Mul", nil, size(v, 1), d.ints(2)), size(v, 2), size(v, 3)))
		}
		q, k, v := split(d.projected(x, "q", 4)), split(d.projected(x, "k", 2)), split(d.projected(x, "v", 2))
		a := d.node("Transpose", ints("perm", 0, 2, 1, 3), d.scored(q, repeat(k), repeat(v)))
		return d.node("Reshape", nil, a, d.node("Concat", number("axis", 0), size(x, 0), size(x, 1), d.ints(16)))
	}},
	{"one bias of queries, keys, values and a normalization", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		bias := d.weight("bias", 16)
		project := func(name string) *ir.Value {
			return d.split(d.node("Add", nil, d.node("MatMul", nil, x, d.byHead(name, 8, 1, 4)), d.node("Identity", nil, bias)),
				4)
		}
		a := d.merged(d.scored(project("q"), project("k"), project("v")))
		x = d.node("MatMul", nil, x, d.weight("wide", 8, 16))
		d.output(d.node("LayerNormalization", nil, x, bias, d.node("Identity", nil, bias)), 2, 5, 16)
		return a
	}},
	{"mask expanded to a computed shape", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		x.Type.Shape[0], x.Type.Shape[1] = ir.Dim{N: -1, Param: "b"}, ir.Dim{N: -1, Param: "s"}
		size := func(v *ir.Value, i int64) *ir.Value { return d.node("Gather", nil, d.node("Shape", nil, v), d.ints(i)) }
		split := func(name string) *ir.Value {
			shape := d.node("Concat", number("axis", 0), size(x, 0), size(x, 1), d.ints(4, 4))
			return d.node("Transpose", ints("perm", 0, 2, 1, 3), d.node("Reshape", nil, d.projected(x, name, 4), shape))
		}
		q, k, v := split("q"), split("k"), split("v")
		shape := d.node("Concat", number("axis", 0), size(x, 0), d.ints(1), size(x, 1), size(x, 1))
		ones := d.node("Add", nil, d.node("Cast", number("to", int64(ir.Int64)),
			d.node("ConstantOfShape", nil, d.node("Shape", nil, shape))), d.ints(1))
		shape = d.node("Where", nil, d.node("Equal", nil, shape, d.node("Mul", nil, ones, d.ints(-1))), ones, shape)
		mask := d.node("Expand", nil, d.node("Unsqueeze", nil, d.node("ReduceMax", ints("axes", 2), x), d.ints(1)), shape)
		mask = d.node("Sub", nil, d.factors(1), mask)
		mask = d.node("Where", nil, d.node("Cast", number("to", int64(ir.Bool)), d.node("Relu", nil, mask)),
			d.factors(-9), mask)
		mask = d.node("Slice", nil, mask, d.ints(0), size(k, 2), d.ints(3))
		s := d.node("Add", nil, d.node("MatMul", nil, q, d.node("Transpose", ints("perm", 0, 1, 3, 2), k)), mask)
		a := d.node("MatMul", nil, d.node("Softmax", number("axis", -1), s), v)
		return d.node("Reshape", nil, d.node("Transpose", ints("perm", 0, 2, 1, 3), a),
			d.node("Concat", number("axis", 0), size(x, 0), size(x, 1), d.ints(16)))
	}},
	{"width of the input as target", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		x.Type.Shape[0], x.Type.Shape[1] = ir.Dim{N: -1, Param: "b"}, ir.Dim{N: -1, Param: "s"}
		size := func(i int64) *ir.Value { return d.node("Gather", nil, d.node("Shape", nil, x), d.ints(i)) }
		split := func(name string) *ir.Value {
			shape := d.node("Concat", number("axis", 0), size(0), size(1), d.ints(4), d.ints(4))
			return d.node("Transpose", ints("perm", 0, 2, 1, 3), d.node("Reshape", nil, d.projected(x, name, 4), shape))
		}
		a := d.node("Transpose", ints("perm", 0, 2, 1, 3), d.scored(split("q"), split("k"), split("v")))
		return d.node("Reshape", nil, a, d.node("Concat", number("axis", 0), size(0), size(1),
			d.node("Mul", nil, size(2), d.ints(2))))
	}},
	{"batch and heads merged", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		x.Type.Shape[0] = ir.Dim{N: -1, Param: "b"}
		q, k, v := d.split(d.projected(x, "q", 4), 4), d.split(d.projected(x, "k", 4), 4), d.split(d.projected(x, "v", 4), 4)
		shape := d.node("Shape", nil, k)
		k = d.node("Transpose", ints("perm", 0, 2, 1), d.node("Reshape", nil, k, d.ints(-1, 5, 4)))
		k = d.node("Reshape", nil, k, d.node("Concat", number("axis", 0), d.node("Slice", nil, shape, d.ints(0), d.ints(2)),
			d.ints(4, 5)))
		return d.merged(d.node("MatMul", nil, d.node("Softmax", number("axis", -1), d.node("MatMul", nil, q, k)), v))
	}},
	{"com.microsoft.Attention", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		return d.fused("Attention", number("num_heads", 4), x, d.byHead("qkv", 8, 3, 4), d.weight("bias", 48))
	}},
	{"com.microsoft.MultiHeadAttention", 17, 4, func(d *drawing, x *ir.Value) *ir.Value {
		q, k, v := d.node("MatMul", nil, x, d.byHead("q", 8, 1, 4)), d.node("MatMul", nil, x, d.byHead("k", 8, 1, 4)),
			d.node("MatMul", nil, x, d.byHead("v", 8, 1, 4))
		return d.fused("MultiHeadAttention", number("num_heads", 4), q, k, v, d.weight("bias", 48))
	}},
	{"com.microsoft.GroupQueryAttention", 17, 2, func(d *drawing, x *ir.Value) *ir.Value {
		return d.fused("GroupQueryAttention", []*ir.Attr{ir.IntAttr("num_heads", 4), ir.IntAttr("kv_num_heads", 2)},
			d.projected(x, "q", 4), d.projected(x, "k", 2), d.projected(x, "v", 2), nil, nil, d.int32s([]int64{2}, 4, 4),
			d.int32s(nil, 5))
	}},
	{"Attention", 23, 2, func(d *drawing, x *ir.Value) *ir.Value {
		return d.node("Attention", []*ir.Attr{ir.IntAttr("q_num_heads", 4), ir.IntAttr("kv_num_heads", 2)},
			d.projected(x, "q", 4), d.projected(x, "k", 2), d.projected(x, "v", 2))
	}},
	{"Attention of four axes", 23, 4, func(d *drawing, x *ir.Value) *ir.Value {
		return d.merged(d.node("Attention", nil, d.split(d.projected(x, "q", 4), 4), d.split(d.projected(x, "k", 4), 4),
			d.split(d.projected(x, "v", 4), 4)))
	}},
	{"RotaryEmbedding", 23, 4, func(d *drawing, x *ir.Value) *ir.Value {
		q := d.node("RotaryEmbedding", number("num_heads", 4), d.projected(x, "q", 4), d.weight("cos", 2, 5, 2),
			d.weight("sin", 2, 5, 2))
		return d.node("Attention", []*ir.Attr{ir.IntAttr("q_num_heads", 4), ir.IntAttr("kv_num_heads", 4)}, q,
			d.projected(x, "k", 4), d.projected(x, "v", 4))
	}},
}

// byHead is a matrix of parts of so many heads of 4 channels, which become smaller from head to head.
func (d *drawing) byHead(name string, rows, parts, heads int64) *ir.Value {
	spec := ir.Spec{Name: name, DType: ir.Float, Shape: []int64{rows, parts * heads * 4}}
	fs := make([]float32, spec.Elems())
	for i := range fs {
		fs[i] = (d.r.Float32() - 0.3) / float32(1+int64(i)/4%heads)
	}
	return d.g.AddConst(name, &ir.Tensor{Spec: spec, Source: ir.Floats(fs...)})
}

// projected are heads of x, with a bias.
func (d *drawing) projected(x *ir.Value, name string, heads int64) *ir.Value {
	return d.node("Add", nil, d.node("MatMul", nil, x, d.byHead(name, 8, 1, heads)), d.weight(name+".bias", heads*4))
}

func (d *drawing) split(x *ir.Value, heads int64) *ir.Value {
	return d.node("Transpose", ints("perm", 0, 2, 1, 3), d.node("Reshape", nil, x, d.ints(0, 5, heads, 4)))
}

func (d *drawing) scored(q, k, v *ir.Value) *ir.Value {
	s := d.node("MatMul", nil, q, d.node("Transpose", ints("perm", 0, 1, 3, 2), k))
	return d.node("MatMul", nil, d.node("Softmax", number("axis", -1), d.node("Mul", nil, s, d.factors(0.5))), v)
}

func (d *drawing) merged(x *ir.Value) *ir.Value {
	return d.node("Reshape", nil, d.node("Transpose", ints("perm", 0, 2, 1, 3), x), d.ints(0, 5, 16))
}

func (d *drawing) fused(op string, attrs []*ir.Attr, in ...*ir.Value) *ir.Value {
	n := d.g.NewNode(ir.OpID{Domain: "com.microsoft", Type: op}, in, attrs...)
	v := d.g.NewValue("fused")
	n.SetOutputs(v)
	d.g.Append(n)
	return v
}

func (d *drawing) int32s(shape []int64, is ...int32) *ir.Value {
	var b []byte
	for _, i := range is {
		b = append(b, byte(i), 0, 0, 0)
	}
	return d.g.AddConst("lengths", &ir.Tensor{Spec: ir.Spec{DType: ir.Int32, Shape: shape}, Source: ir.Mem(b)})
}

// A model without half of its heads computes what the whole one does with the rows of the output projection of these
// heads zeroed.
func TestRemovedHeadsHaveNoConsumers(t *testing.T) {
	w := conform.Start(t)
	for _, a := range attentions {
		t.Run(a.name, func(t *testing.T) {
			d := newDrawing(a.opset)
			d.g.Model().Opsets = append(d.g.Model().Opsets, ir.Opset{Domain: "com.microsoft", Version: 1})
			if a.opset > 17 {
				d.g.Model().IRVersion = 11
			}
			v := d.node("MatMul", nil, a.draw(d, d.input(2, 5, 8)), d.weight("o", 16, 6))
			d.g.AddOutput(v)
			v.Type = &ir.Type{Elem: ir.Float}
			path := d.save(t)
			m, rows, eval := changed(t, path, prune.Heads{}.Method(), "amount", "0.5")
			for _, r := range rows {
				if r.Tensor == "o" && (r.Status != pass.Changed || r.After[0].Tensor.Shape[0] != 8) {
					t.Fatalf("the output projection stays: %s", report.Why(r))
				}
			}
			source := masked(t, path, rows, eval, false)
			if db, ok := decibels(t, source, m); !ok || db < rounding {
				t.Errorf("%.1f dB, ran: %v", db, ok)
			}
			inONNXRuntime(t, w, path, source, m, eval, rounding)
			if rows := again(t, m); rows != 0 && a.groups == 2 {
				t.Errorf("%d weights changed although one group is left", rows)
			}
		})
	}
}

// again prunes a model once more and returns the number of changed weights.
func again(t *testing.T, m *ir.Model) int {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	res, err := pass.Run(t.Context(), m, eval, pass.Environment{Workers: 1}, []pass.Options{&prune.Heads{Amount: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	return changedRows(res.Rows)
}

// An output keeps its size where a shared matrix makes its channels those of heads: only caches lose heads.
func TestOutputsThatShareWithHeadsKeepTheirSize(t *testing.T) {
	d := newDrawing(17)
	x, q := d.input(2, 5, 8), d.byHead("q", 8, 1, 4)
	project := func(w *ir.Value) *ir.Value { return d.node("MatMul", nil, x, w) }
	a := d.merged(d.scored(d.split(project(q), 4), d.split(project(d.byHead("k", 8, 1, 4)), 4),
		d.split(project(d.byHead("v", 8, 1, 4)), 4)))
	d.output(d.node("MatMul", nil, a, d.weight("out", 16, 8)), 2, 5, 8)
	d.output(d.node("Relu", nil, project(q)), 2, 5, 16)
	m, rows, _ := changed(t, d.save(t), prune.Heads{}.Method())
	for _, r := range rows {
		if r.Status == pass.Changed {
			t.Errorf("%s is pruned", r.Tensor)
		}
	}
	if shape := m.Graph.Outputs[1].Type.Shape; shape[2].N != 16 {
		t.Errorf("the output has the shape %v", shape)
	}
}

// Decoders lose the heads of their caches, too.
func TestHeadsOfCaches(t *testing.T) {
	w := conform.Start(t)
	decoders := map[string]func([]int) *ir.Model{
		"separate": separate("past_key_values.%d.%s", "present.%d.%s", func(int) int { return 0 }),
		"together": together,
	}
	for name, build := range decoders {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/model.onnx"
			m := build([]int{0, 1})
			firstHeads(t, m)
			eval := ir.NewEval(t.TempDir())
			defer eval.Close()
			if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: eval}); err != nil {
				t.Fatal(err)
			}
			small, rows, kept := changed(t, path, prune.Heads{}.Method(), "amount", "0.5")
			if changedRows(rows) == 0 {
				t.Fatal("no heads removed")
			}
			for _, v := range slices.Concat(small.Graph.Inputs, small.Graph.Outputs) {
				if d := v.Type.Shape; len(d) > 3 && d[len(d)-3].N != heads/2 {
					t.Errorf("%s has %d heads", v.Name, d[len(d)-3].N)
				}
			}
			source := masked(t, path, rows, kept, false)
			if db, ok := decibels(t, source, small); !ok || db < rounding {
				t.Errorf("%.1f dB, ran: %v", db, ok)
			}
			out := t.TempDir() + "/out.onnx"
			if _, err := onnx.Save(t.Context(), small, out, onnx.SaveOptions{Workers: 1, Memory: 1 << 20,
				Eval: kept}); err != nil {
				t.Fatal(err)
			}
			if err := w.Check(out, true); err != nil {
				t.Error(err)
			}
			if _, err := w.Run(out, conform.Options{Random: true}); err != nil {
				t.Error(err)
			}
		})
	}
}

// firstHeads makes the weights of the first heads of a decoder larger, so that these stay.
func firstHeads(t *testing.T, m *ir.Model) {
	t.Helper()
	for _, v := range m.Graph.Consts() {
		part := v.Name[strings.IndexByte(v.Name, '.')+1:]
		if !slices.Contains([]string{"q", "k", "v", "qkv"}, part) {
			continue
		}
		fs := decodeFloats(t, v.Const)
		for i := range fs {
			if i/headSize%heads == 0 {
				fs[i] *= 3
			}
		}
		v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Floats(fs...)})
	}
}

func decodeFloats(t *testing.T, x *ir.Tensor) []float32 {
	t.Helper()
	b, ok := x.Source.(ir.Mem)
	if !ok {
		t.Fatal(fmt.Sprint(x.Spec))
	}
	fs := make([]float32, x.Elems())
	for i := range fs {
		fs[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24)
	}
	return fs
}

// A neuron of large weights that is never active is removed first by its inputs, and last by magnitude.
func TestImportanceByInputs(t *testing.T) {
	d := newDrawing(17)
	x := d.input(4, 8)
	first, bias := make([]float32, 32), make([]float32, 4)
	for i := range first {
		first[i] = d.r.Float32() + 0.1
		if i%4 == 3 {
			first[i] *= 10
		}
	}
	bias[3] = -1e6
	constant := func(name string, fs []float32, shape ...int64) *ir.Value {
		return d.g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: shape},
			Source: ir.Floats(fs...)})
	}
	hidden := d.node("Relu", nil, d.node("Add", nil, d.node("MatMul", nil, x, constant("up", first, 8, 4)),
		constant("bias", bias, 4)))
	d.output(d.node("MatMul", nil, hidden, d.weight("down", 4, 3)), 4, 3)
	path := d.save(t)
	for importance, exact := range map[string]bool{"magnitude": false, "wanda": true} {
		m, _, _ := changed(t, path, prune.FFN{}.Method(), "amount", "0.25", "importance", importance)
		if db, ok := decibels(t, open(t, path).Model, m); !ok || db > rounding != exact {
			t.Errorf("%s: %.1f dB", importance, db)
		}
	}
	if err := (prune.Heads{Importance: "l7"}).Check(); err == nil {
		t.Error("an unknown importance is accepted")
	}
}
