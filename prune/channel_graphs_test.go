package prune_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/report"
)

// A drawing builds one small graph with random weights.
type drawing struct {
	g    *ir.Graph
	r    *rand.Rand
	view func(d *drawing, v *ir.Value, shape ...int64) *ir.Value // between weights and their consumers; nil for none
}

func newDrawing(opset int64) *drawing {
	m := ir.NewModel()
	m.IRVersion, m.Opsets, m.Graph.Name = 8, []ir.Opset{{Version: opset}}, "g"
	return &drawing{m.Graph, rand.New(rand.NewPCG(3, uint64(opset))), nil}
}

func (d *drawing) weight(name string, shape ...int64) *ir.Value {
	spec := ir.Spec{Name: name, DType: ir.Float, Shape: shape}
	fs := make([]float32, spec.Elems())
	for i := range fs {
		fs[i] = d.r.Float32() + 0.1
	}
	v := d.g.AddConst(name, &ir.Tensor{Spec: spec, Source: ir.Floats(fs...)})
	if d.view != nil {
		return d.view(d, v, shape...)
	}
	return v
}

func (d *drawing) ints(is ...int64) *ir.Value {
	spec := ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}}
	return d.g.AddConst("i", &ir.Tensor{Spec: spec, Source: ir.Ints(is...)})
}

// factors are those of Resize.
func (d *drawing) factors(fs ...float32) *ir.Value {
	spec := ir.Spec{DType: ir.Float, Shape: []int64{int64(len(fs))}}
	return d.g.AddConst("factors", &ir.Tensor{Spec: spec, Source: ir.Floats(fs...)})
}

// typed states v's type: sizes below 0 are the symbol n.
func typed(v *ir.Value, shape ...int64) *ir.Value {
	v.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{}}
	for _, d := range shape {
		if d < 0 {
			v.Type.Shape = append(v.Type.Shape, ir.Dim{N: -1, Param: "n"})
			continue
		}
		v.Type.Shape = append(v.Type.Shape, ir.Dim{N: d})
	}
	return v
}

func (d *drawing) input(shape ...int64) *ir.Value {
	v := typed(d.g.NewValue("x"), shape...)
	d.g.Inputs = append(d.g.Inputs, v)
	return v
}

func (d *drawing) node(op string, attrs []*ir.Attr, in ...*ir.Value) *ir.Value {
	return d.g.Insert(nil, op, in, attrs...)
}

func (d *drawing) output(v *ir.Value, shape ...int64) { d.g.AddOutput(typed(v, shape...)) }

func (d *drawing) save(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	if _, err := onnx.Save(context.Background(), d.g.Model(), path, onnx.SaveOptions{Workers: 1, Memory: 1 << 20,
		Eval: eval}); err != nil {
		t.Fatal(err)
	}
	return path
}

func ints(name string, is ...int64) []*ir.Attr { return []*ir.Attr{ir.IntsAttr(name, is...)} }

func number(name string, i int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr(name, i)} }

// Graphs whose channels pass one operator each, from a Conv of 8 filters, a, on
// 4×4 pixels, to a weight, z, which has to lose what it read.
var followed = []struct {
	name  string
	opset int64
	// width ≥ 0: z is a matrix of so many rows; else a Conv of -width channels
	draw func(d *drawing, a *ir.Value) (v *ir.Value, width int64)
}{
	{"vectors", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("BatchNormalization", nil, a, d.weight("s", 8), d.weight("b", 8), d.weight("m", 8), d.weight("v", 8))
		a = d.node("PRelu", nil, a, d.weight("p", 8, 1, 1))
		return d.node("InstanceNormalization", nil, d.node("Div", nil, a, d.weight("d", 1, 8, 1, 1)), d.weight("i", 8),
			d.weight("j", 8)), -8
	}},
	{"residual sum", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		b := d.node("Conv", nil, d.node("Sigmoid", nil, a), d.weight("w2", 8, 8, 1, 1), d.weight("b2", 8))
		return d.node("Add", nil, a, b), -8
	}},
	{"squeeze and excite", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		b := d.node("ReduceMean", ints("axes", 2, 3), a)
		b = d.node("Relu", nil, d.node("Conv", nil, b, d.weight("w2", 4, 8, 1, 1)))
		return d.node("Mul", nil, a, d.node("HardSigmoid", nil, d.node("Conv", nil, b, d.weight("w3", 8, 4, 1, 1)))), -8
	}},
	{"concatenation with others", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		b := d.node("Conv", nil, a, d.weight("w2", 6, 8, 1, 1))
		return d.node("Concat", number("axis", -3), a, d.g.Inputs[0], b), -17
	}},
	{"split", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		vs := d.g.InsertN(nil, "Split", 2, []*ir.Value{a, d.ints(3, 5)}, ir.IntAttr("axis", 1))
		return d.node("Concat", number("axis", 1), vs[1], d.node("Exp", nil, vs[0])), -8
	}},
	{"split into equal parts", 18, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		vs := d.g.InsertN(nil, "Split", 2, []*ir.Value{a}, ir.IntAttr("axis", 1), ir.IntAttr("num_outputs", 2))
		return d.node("Mul", nil, vs[1], d.node("Sigmoid", nil, vs[0])), -4
	}},
	{"split by attribute", 11, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		vs := d.g.InsertN(nil, "Split", 2, []*ir.Value{a}, ir.IntAttr("axis", 1), ir.IntsAttr("split", 6, 2))
		return vs[0], -6
	}},
	{"slice", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Slice", nil, a, d.ints(2, 1), d.ints(-1, 3), d.ints(1, 2)), -5
	}},
	{"depthwise", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Conv", number("group", 8), a, d.weight("w2", 16, 1, 2, 2), d.weight("b2", 16)), -16
	}},
	{"groups", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Conv", number("group", 2), a, d.weight("w2", 12, 4, 1, 1), d.weight("b2", 12)), -12
	}},
	{"transposed convolutions", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("ConvTranspose", nil, a, d.weight("w2", 8, 6, 2, 2), d.weight("b2", 6))
		return d.node("ConvTranspose", number("group", 6), a, d.weight("w3", 6, 1, 2, 2)), -6
	}},
	{"pooling, padding, resizing", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("MaxPool", ints("kernel_shape", 2, 2), a)
		a = d.node("Pad", nil, a, d.ints(0, 0, 1, 0, 0, 0, 0, 1))
		return d.node("Resize", nil, a, nil, nil, d.ints(2, 8, 8, 8)), -8
	}},
	{"flattened", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Flatten", nil, a), 8 * 16
	}},
	{"reshaped to rows", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Reshape", nil, a, d.ints(-1, 128)), 8 * 16
	}},
	{"reshaped with copied sizes", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Transpose", ints("perm", 0, 2, 1), d.node("Reshape", nil, a, d.ints(0, 8, 16)))
		return d.node("Reshape", nil, a, d.ints(-1, 8)), 8
	}},
	{"reshaped to a computed shape", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		n := d.node("Unsqueeze", nil, d.node("Gather", number("axis", 0), d.node("Shape", nil, a), d.ints(0)), d.ints(0))
		n = d.node("Squeeze", nil, n, d.ints(0))
		return d.node("Reshape", nil, a, d.node("Concat", number("axis", 0), n, d.ints(128))), 8 * 16
	}},
	{"channels last, flattened", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Reshape", nil, d.node("Transpose", ints("perm", 0, 2, 3, 1), a), d.ints(2, -1)), 8 * 16
	}},
	{"axes put in and taken out", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Squeeze", nil, d.node("GlobalAveragePool", nil, a), d.ints(2, -1))
		return d.node("Squeeze", nil, d.node("Unsqueeze", nil, a, d.ints(0, 3)), d.ints(0, -1)), 8
	}},
	{"one position picked", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Reshape", nil, d.node("Transpose", ints("perm", 0, 2, 3, 1), a), d.ints(0, 16, 8))
		return d.node("Softmax", number("axis", 0), d.node("Gather", number("axis", 1), a, d.ints(3))), 8
	}},
	{"attention of one head", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Transpose", ints("perm", 0, 2, 1), d.node("Reshape", nil, a, d.ints(0, 8, 16)))
		q, k := d.node("MatMul", nil, a, d.weight("q", 8, 6)), d.node("MatMul", nil, a, d.weight("k", 8, 6))
		s := d.node("Softmax", number("axis", -1), d.node("MatMul", nil, q, d.node("Transpose", ints("perm", 0, 2, 1), k)))
		return d.node("MatMul", nil, s, d.node("MatMul", nil, a, d.weight("v", 8, 6))), 6
	}},
	{"constant left matrix", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("MatMul", nil, d.weight("w2", 6, 8), d.node("Reshape", nil, a, d.ints(2, 8, 16)))
		return d.node("Transpose", ints("perm", 0, 2, 1), a), 6
	}},
	{"transposed by default", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Transpose", ints("perm", 3, 2, 1, 0), d.node("Transpose", nil, a)), -8
	}},
	{"reshaped to a computed shape of an unknown batch size", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		d.g.Inputs[0].Type.Shape[0] = ir.Dim{N: -1}
		n := d.node("Slice", nil, d.node("Shape", nil, a), d.ints(-4), d.ints(-3))
		return d.node("Reshape", nil, a, d.node("Concat", number("axis", 0), n, d.ints(128))), 8 * 16
	}},
	{"reshaped to computed sizes of other axes", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Reshape", nil, a, d.ints(2, 8, 16))
		last := d.node("Slice", nil, d.node("Shape", nil, a), d.ints(2), d.ints(math.MaxInt64))
		a = d.node("Reshape", nil, a, d.node("Concat", number("axis", 0), d.ints(2), d.ints(8), last))
		return d.node("Transpose", ints("perm", 0, 2, 1), a), 8
	}},
	{"resized by factors", 11, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Resize", nil, a, d.factors(), d.factors(1, 1, 2, 2)), -8
	}},
	{"resized by factors before opset 11", 10, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		return d.node("Resize", nil, a, d.factors(1, 1, 2, 2)), -8
	}},
	{"linear layers", 17, func(d *drawing, a *ir.Value) (*ir.Value, int64) {
		a = d.node("Gemm", number("transB", 1), d.node("Flatten", nil, a), d.weight("w2", 12, 128), d.weight("b2", 12))
		a = d.node("Gelu", nil, d.node("Add", nil, d.node("MatMul", nil, a, d.weight("w3", 12, 10)), d.weight("b3", 10)))
		return a, 10
	}},
}

// Views of weights, of their own shape.
var views = map[string]func(d *drawing, v *ir.Value, shape ...int64) *ir.Value{
	"":                nil,
	"behind Identity": func(d *drawing, v *ir.Value, _ ...int64) *ir.Value { return d.node("Identity", nil, v) },
	"behind Reshape": func(d *drawing, v *ir.Value, shape ...int64) *ir.Value {
		return d.node("Reshape", nil, v, d.ints(shape...))
	},
	"behind two of Reshape": func(d *drawing, v *ir.Value, shape ...int64) *ir.Value {
		return d.node("Reshape", nil, d.node("Reshape", nil, v, d.ints(-1)), d.ints(shape...))
	},
	"behind Squeeze and Reshape": func(d *drawing, v *ir.Value, shape ...int64) *ir.Value {
		return d.node("Reshape", nil, d.node("Squeeze", nil, v), d.ints(shape...))
	},
}

// Every operator that is followed takes channels to where they are read, also of weights behind views, and the model
// computes what the masked one does.
func TestChannelsAreFollowed(t *testing.T) {
	w := conform.Start(t)
	for _, f := range followed {
		for name, view := range views {
			t.Run(f.name+" "+name, func(t *testing.T) {
				d := newDrawing(f.opset)
				if f.name == "linear layers" {
					d.g.Model().Opsets[0].Version = 20 // Gelu
				}
				d.view = view
				x := d.input(2, 3, 4, 4)
				v, width := f.draw(d, d.node("Conv", nil, x, d.weight("a", 8, 3, 1, 1), d.weight("bias", 8)))
				if width < 0 {
					v = d.node("Conv", nil, v, d.weight("z", 5, -width, 1, 1))
				} else {
					v = d.node("MatMul", nil, v, d.weight("z", width, 5))
				}
				d.g.AddOutput(v)
				v.Type = &ir.Type{Elem: ir.Float}
				path := d.save(t)
				m, rows, eval := changed(t, path, prune.Channel{}.Method())
				for _, r := range rows {
					if r.Status != pass.Changed && pass.IsWeight(r.Before) && !strings.HasPrefix(r.Tensor, "factors") {
						t.Errorf("%s stays: %s", r.Tensor, report.Why(r))
					}
				}
				source := masked(t, path, rows, eval, true)
				if db, ok := decibels(t, source, m); !ok || db < rounding {
					t.Errorf("%.1f dB, ran: %v", db, ok)
				}
				inONNXRuntime(t, w, path, source, m, eval, rounding)
			})
		}
	}
}

// Where channels end, or cannot be followed, all layers of the group stay and say why.
func TestReasonsOfKeptChannels(t *testing.T) {
	for _, c := range []struct {
		reason string
		draw   func(d *drawing, a *ir.Value) *ir.Value
	}{
		{"channels of a graph output", func(d *drawing, a *ir.Value) *ir.Value { return d.node("Relu", nil, a) }},
		{"channels not pruned, not followed through LRN", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("LRN", number("size", 3), a)
		}},
		{"channels not pruned, axis not supported at LayerNormalization: normalization over channels",
			func(d *drawing, a *ir.Value) *ir.Value {
				return d.node("LayerNormalization", number("axis", 1), a, d.weight("s", 8, 4, 4))
			}},
		{"channels not pruned, axis not supported at Softmax: normalization over channels",
			func(d *drawing, a *ir.Value) *ir.Value {
				return d.node("Softmax", number("axis", 1), a)
			}},
		{"channels not pruned, axis not supported at ReduceSum: reduced axis", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("ReduceSum", nil, a, d.ints(1))
		}},
		{"channels not pruned, axis not supported at Reshape: axes split or moved", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("Reshape", nil, a, d.ints(2, 2, 4, 4, 4))
		}},
		{"channels not pruned, axis not supported at Add: kept channels of x1", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("Add", nil, a, d.input(2, 8, 4, 4))
		}},
		{"channels not pruned, axis not supported at Shape: number of channels", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("Mul", nil, a, d.node("Cast", number("to", 1),
				d.node("Gather", nil, d.node("Shape", nil, a), d.ints(1))))
		}},
		{"channels not pruned, other use at Abs: a", func(d *drawing, a *ir.Value) *ir.Value {
			b := d.node("Abs", nil, a.Producer().Input(1))
			d.output(b, 8, 3, 1, 1)
			return d.node("Conv", nil, a, d.weight("z", 5, 8, 1, 1))
		}},
		{"channels not pruned, unknown at Transpose: rank", func(d *drawing, a *ir.Value) *ir.Value {
			return d.node("Transpose", ints("perm", 0, 1, 1<<31, 3), d.node("Relu", nil, a))
		}},
		{"channels not pruned, unknown at ReduceSum: axes", func(d *drawing, a *ir.Value) *ir.Value {
			// The product of a matrix and a scalar is invalid, and has no channels.
			y := d.node("MatMul", nil, d.weight("z", 8, 8), typed(d.node("ReduceSum", number("keepdims", 0), a)))
			return d.node("Add", nil, y, d.weight("b", 8))
		}},
	} {
		d := newDrawing(17)
		v := c.draw(d, d.node("Conv", nil, d.input(2, 3, 4, 4), d.weight("a", 8, 3, 1, 1)))
		d.g.AddOutput(v)
		v.Type = &ir.Type{Elem: ir.Float}
		_, rows, _ := changed(t, d.save(t), prune.Channel{}.Method())
		for _, r := range rows {
			if r.Tensor == "a" && (r.Status != pass.Skipped || !strings.HasPrefix(report.Why(r), c.reason)) {
				t.Errorf("%v %q, want %q", r.Status, report.Why(r), c.reason)
			}
		}
	}
}

// The parts of a joined matrix have a channel each, whatever their importances: an axis without elements is no layer,
// and Reshape reads its size 0 as that of the input.
func TestEachAxisKeepsAChannel(t *testing.T) {
	for _, options := range [][]string{{"amount", "0.5"}, {"amount", "0.9"}, {"amount", "0.5", "round", "2"},
		{"target-macs", "0.4"}} {
		d := newDrawing(18)
		joined := make([]float32, 4*12)
		for i := range joined {
			joined[i] = 1 + d.r.Float32()
			if i%12 >= 6 {
				joined[i] *= 1e-3 // the second part is the least important one
			}
		}
		spec := ir.Spec{Name: "joined", DType: ir.Float, Shape: []int64{4, 12}}
		w := d.g.AddConst("joined", &ir.Tensor{Spec: spec, Source: ir.Floats(joined...)})
		y := d.node("MatMul", nil, d.input(2, 4), w)
		parts := d.g.InsertN(nil, "Split", 2, []*ir.Value{y, d.ints(6, 6)}, ir.IntAttr("axis", 1))
		a := d.node("MatMul", nil, parts[0], d.weight("a", 6, 5))
		b := d.node("MatMul", nil, d.node("Reshape", nil, parts[1], d.ints(2, 6)), d.weight("b", 6, 5))
		d.output(d.node("Add", nil, a, b), 2, 5)
		path := d.save(t)
		m, rows, eval := changed(t, path, prune.Channel{}.Method(), options...)
		sizes := map[string]int64{}
		for _, v := range m.Graph.Consts() {
			sizes[v.Name] = v.Const.Shape[0]
		}
		if sizes["a"] < 1 || sizes["b"] < 1 || sizes["a"]+sizes["b"] >= 12 {
			t.Errorf("%v: %d and %d channels are left, want some of each and fewer than 12", options, sizes["a"], sizes["b"])
		}
		if db, ok := decibels(t, masked(t, path, rows, eval, true), m); !ok || db < 100 {
			t.Errorf("%v: %.1f dB compared with zeros, %t", options, db, ok)
		}
	}
}
