package quantize

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Models of the oldest opsets are raised by every method that needs a newer one, and run in ONNX Runtime.
func TestOldestOpsetsAreRaised(t *testing.T) {
	for _, c := range []struct {
		variant
		floor float64
	}{
		{dyn, 25}, {variant{StaticInt8{}.Method(), nil}, 20}, {weights, 25},
		{variant{WeightInt8{}.Method(), []string{"block=32"}}, 25}, {variant{WeightInt4{}.Method(), nil}, 12},
		{variant{WeightInt4{}.Method(), []string{"algo=gptq"}}, 12},
		{variant{WeightInt2{}.Method(), nil}, 0}, {variant{Float16{}.Method(), nil}, 50}, {computing, 50},
		{variant{Float8{}.Method(), nil}, 20},
	} {
		s := newBuilder(t, 6)
		h := s.node("Relu", []*ir.Value{s.node("MatMul", []*ir.Value{s.input("x", 4, 64), s.weight("w", 64, 96)})})
		s.output("y", s.node("MatMul", []*ir.Value{h, s.weight("v", 96, 32)}), 4, 32)
		r := s.apply(c.variant, c.floor)
		for _, w := range []string{"w", "v"} {
			if got := r.row(w); !strings.HasPrefix(got, "changed") {
				t.Errorf("%s: %s: %s", c.variant, w, got)
			}
		}
	}
}
