package quantize

import (
	"fmt"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
)

// A mask is 0 where positions are kept, and a large negative number elsewhere: in float16 it is clamped, whichever
// operators compute it, so that a row without any position has a softmax.
func TestMasksDoNotOverflow(t *testing.T) {
	for name, mask := range map[string]func(s *builder, blocked *ir.Value, low float32) *ir.Value{
		"Mul": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("Mul", []*ir.Value{blocked, s.floats(nil, low)})
		},
		"Mul Neg": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("Neg", []*ir.Value{s.node("Mul", []*ir.Value{s.floats([]int64{1}, -low), blocked})})
		},
		"Div": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("Div", []*ir.Value{blocked, s.floats(nil, 1/max(low, -1e37))})
		},
		"Sub Mul": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("Sub", []*ir.Value{s.node("Mul",
				[]*ir.Value{s.node("Sub", []*ir.Value{s.floats(nil, 1), blocked}), s.floats(nil, -low)}), s.floats(nil, -low)})
		},
		"MatMul": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("MatMul", []*ir.Value{blocked,
				s.floats([]int64{4, 4}, low, 0, 0, 0, 0, low, 0, 0, 0, 0, low, 0, 0, 0, 0, low)})
		},
		"Where": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			return s.node("Where", []*ir.Value{s.node("Cast", []*ir.Value{blocked}, ir.IntAttr("to", int64(ir.Bool))),
				s.floats(nil, low), s.floats(nil, 0)})
		},
		"ConstantOfShape": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			value := ir.TensorAttr("value", quanttest.TensorOf(ir.Float, []int64{1}, []float32{low}))
			return s.node("Mul", []*ir.Value{blocked, s.node("ConstantOfShape", []*ir.Value{s.ints(4)}, value)})
		},
		"integers": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			x := s.node("Mul", []*ir.Value{s.node("Cast", []*ir.Value{blocked}, ir.IntAttr("to", int64(ir.Int64))),
				s.ints(int64(max(low, -1e12)))})
			return s.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Float)))
		},
		"two masks": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			product := func() *ir.Value { return s.node("Mul", []*ir.Value{blocked, s.floats(nil, low/2)}) }
			return s.node("Add", []*ir.Value{product(), product()})
		},
		"subgraph": func(s *builder, blocked *ir.Value, low float32) *ir.Value {
			y := s.node("If", []*ir.Value{s.AddConst("true", &ir.Tensor{Spec: ir.Spec{DType: ir.Bool}, Source: ir.Mem{1}})})
			for _, attr := range []string{"then_branch", "else_branch"} {
				g := ir.NewSubgraph(s.Graph, y.Producer())
				g.Name = attr
				g.AddOutput(g.Insert(nil, "Mul", []*ir.Value{blocked, s.floats(nil, low)}))
				y.Producer().SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: g})
			}
			return y
		},
	} {
		for _, low := range []float32{-math.MaxFloat32, -1e9, -1e5} {
			for _, opset := range []int64{9, 17} {
				t.Run(name, func(t *testing.T) {
					s := newBuilder(t, opset)
					x := s.input("x", 8, 64)
					blocked := s.blocked(x)
					scores := s.node("Sub",
						[]*ir.Value{s.node("Mul",
							[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 4)}), s.floats(nil, 1./256)}), s.floats(nil, 100)})
					s.output("y", s.node("Softmax", []*ir.Value{s.node("Add", []*ir.Value{scores, mask(s, blocked, low)})},
						ir.IntAttr("axis", 1)), 8, 4)
					s.masked()
				})
			}
		}
	}
}

// blocked is 1 where a position of a row is masked, and depends on x, so that it is no constant expression. One row has
// no position.
func (s *builder) blocked(x *ir.Value) *ir.Value {
	kept := s.AddConst("kept", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{8, 4}}, Source: ir.Ints(
		1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0)})
	kept = s.node("Mul", []*ir.Value{kept,
		s.node("Cast", []*ir.Value{s.node("Less",
			[]*ir.Value{s.node("ReduceMax", []*ir.Value{x}, ir.IntAttr("keepdims", 0)), s.floats(nil, 1e4)})},
			ir.IntAttr("to", int64(ir.Int64)))})
	return s.node("Sub", []*ir.Value{s.floats(nil, 1),
		s.node("Cast", []*ir.Value{kept}, ir.IntAttr("to", int64(ir.Float)))})
}

// masked checks that the outputs are probabilities in float16, in ONNX Runtime and in the embedded engine.
func (s *builder) masked() {
	t := s.t
	t.Helper()
	r := s.apply(computing, 25, func(o *job.Options) { o.Verify = &job.Verification{Force: true, Required: true} })
	r.expect(map[string]string{"w": "changed float16"})
	a, err := conform.Start(t).Run(r.out, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range floats32(a[0].Data) {
		if !(v >= 0) {
			t.Fatalf("element %d is %v in ONNX Runtime", i, v)
		}
	}
	for _, o := range r.Report.Verification.Outputs {
		if o.Errors == nil || o.Errors.NonFinite > 0 {
			t.Errorf("%+v in the embedded engine", o.Errors)
		}
	}
}

// Several masks of one position are within the range too, wherever they meet.
func TestSumsOfMasksDoNotOverflow(t *testing.T) {
	for name, add := range map[string]func(s *builder, scores, a, b *ir.Value) *ir.Value{
		"in sequence": func(s *builder, scores, a, b *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.node("Add", []*ir.Value{scores, a}), b})
		},
		"first the masks": func(s *builder, scores, a, b *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.node("Add", []*ir.Value{a, b}), scores})
		},
		"Sum": func(s *builder, scores, a, b *ir.Value) *ir.Value { return s.node("Sum", []*ir.Value{scores, a, b}) },
		"difference": func(s *builder, scores, a, b *ir.Value) *ir.Value {
			return s.node("Sub", []*ir.Value{s.node("Add", []*ir.Value{scores, a}), s.node("Neg", []*ir.Value{b})})
		},
		"three times": func(s *builder, scores, a, b *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.node("Add", []*ir.Value{s.node("Add", []*ir.Value{scores, a}), b}), a})
		},
		"after a choice": func(s *builder, scores, a, b *ir.Value) *ir.Value {
			kept := s.node("Less", []*ir.Value{s.node("Neg", []*ir.Value{a}), s.floats(nil, 1)})
			return s.node("Add", []*ir.Value{s.node("Where", []*ir.Value{kept, scores, s.floats(nil, -1e38)}), b})
		},
	} {
		for _, low := range []float32{-math.MaxFloat32 / 4, -1e9, -1e5, -65504} {
			t.Run(fmt.Sprintf("%s %g", name, low), func(t *testing.T) {
				s := newBuilder(t, 17)
				x := s.input("x", 8, 64)
				blocked := s.blocked(x)
				scores := s.node("Mul", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 4)}), s.floats(nil, 1./256)})
				mask := func() *ir.Value { return s.node("Mul", []*ir.Value{blocked, s.floats(nil, low)}) }
				s.output("y", s.node("Softmax", []*ir.Value{add(s, scores, mask(), mask())}, ir.IntAttr("axis", 1)), 8, 4)
				s.masked()
			})
		}
	}
}
