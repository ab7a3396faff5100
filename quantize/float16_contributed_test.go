package quantize

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// contributed is a node of ONNX Runtime's operator op.
func (s *builder) contributed(op string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	y := s.node(op, in, attrs...)
	y.Producer().Op.Domain = opset.Contributed
	return y
}

// Weights of ONNX Runtime's operators are stored as float16, or computed with in it, as those of ONNX's are.
func TestContributedOperatorsInFloat16(t *testing.T) {
	three := []int64{2, 4, 64}
	for name, build := range map[string]func(s *builder, x *ir.Value) *ir.Value{
		"Attention": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("Attention", []*ir.Value{x, s.weight("w", 64, 192), s.weight("bias", 192)},
				ir.IntAttr("num_heads", 2))
		},
		"MultiHeadAttention": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("MultiHeadAttention",
				[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)}), x, x}, ir.IntAttr("num_heads", 2))
		},
		"FusedMatMul": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("FusedMatMul", []*ir.Value{x, s.weight("w", 64, 64)}, ir.FloatAttr("alpha", 0.125))
		},
		"BiasGelu": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("BiasGelu", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)}),
				s.weight("bias", 64)})
		},
		"FastGelu": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("FastGelu", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)})})
		},
		"QuickGelu": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("QuickGelu", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)})})
		},
		"SkipLayerNormalization": func(s *builder, x *ir.Value) *ir.Value {
			return s.contributed("SkipLayerNormalization",
				[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)}), x, s.weight("gain", 64), s.weight("bias", 64)})
		},
		"MoE": func(s *builder, x *ir.Value) *ir.Value {
			router := s.node("Reshape", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("router", 64, 4)}), s.ints(-1, 4)})
			return s.contributed("MoE", []*ir.Value{x, router, s.weight("w", 4, 96, 64), nil, s.weight("v", 4, 64, 96)},
				ir.IntAttr("k", 2), ir.StringAttr("activation_type", "silu"))
		},
	} {
		for _, v := range []variant{{Float16{}.Method(), nil}, computing} {
			t.Run(name+" "+v.String(), func(t *testing.T) {
				s := newBuilder(t, 17)
				s.Model().Opsets = append(s.Model().Opsets, ir.Opset{Domain: opset.Contributed, Version: 1})
				s.output("y", build(s, s.input("x", three...)), three...)
				r := s.apply(v, 30)
				r.expect(map[string]string{"w": "changed"})
				if _, err := conform.Start(t).Run(r.out, conform.Options{Level: "none"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
