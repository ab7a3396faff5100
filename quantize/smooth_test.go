package quantize

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

var (
	smooth = variant{Smooth{}.Method(), nil}
	auto   = variant{Smooth{}.Method(), []string{"alpha=auto"}}
)

func TestSmoothModelsComputeTheSame(t *testing.T) {
	many(t)
	w := conform.Start(t)
	n := 0
	names := []string{"transformer", "mlp", "half", "gpt2_tiny_fp32", "qwen35_tiny", "mnist_self_attention"}
	if conform.Exhaustive() {
		names = append(names, "minilm_l6_v2_vocab3086") // a hundred times larger than the others
	}
	for _, path := range slices.Concat(conform.Fixtures(t), conform.QuickModels(t)) {
		if !slices.Contains(names, label(path)) {
			continue
		}
		for _, v := range []variant{smooth, auto} {
			if equivalent(t, w, v, path, min(80, rounding(path))) != nil {
				n++
			}
		}
	}
	if n < len(names) {
		t.Errorf("%d times a model was changed", n)
	}
}

// The producers of a product's input, and the nodes after smoothing: factors are folded into constants, and a Mul is
// inserted only without one.
func TestFactorsAreFolded(t *testing.T) {
	w := conform.Start(t)
	for _, c := range []struct {
		name  string
		build func(s *builder, x *ir.Value) *ir.Value
		muls  int
	}{
		{"LayerNormalization", func(s *builder, x *ir.Value) *ir.Value {
			return s.node("LayerNormalization", []*ir.Value{x, s.uneven("gain", 0, 8), s.weight("shift", 8)})
		}, 0},
		{"RMSNormalization", func(s *builder, x *ir.Value) *ir.Value {
			return s.node("RMSNormalization", []*ir.Value{x, s.uneven("gain", 0, 8)})
		}, 0},
		{"written out", func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.weight("shift", 8),
				s.node("Mul", []*ir.Value{s.node("Tanh", []*ir.Value{x}), s.uneven("gain", 0, 1, 1, 8)})})
		}, 1},
		{"gain alone", func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Mul", []*ir.Value{s.uneven("gain", 0, 8), s.node("Tanh", []*ir.Value{x})})
		}, 1},
		{"layer through Relu", func(s *builder, x *ir.Value) *ir.Value {
			y := s.node("Add", []*ir.Value{s.node("MatMul", []*ir.Value{x, s.uneven("v", 1, 8, 8)}), s.weight("b", 8)})
			return s.node("Relu", []*ir.Value{y})
		}, 1}, // one for x
		{"gate", func(s *builder, x *ir.Value) *ir.Value {
			up := s.node("MatMul", []*ir.Value{x, s.uneven("up", 1, 8, 8)})
			return s.node("Mul", []*ir.Value{s.node("Sigmoid", []*ir.Value{s.node("Sin", []*ir.Value{x})}), up})
		}, 2}, // the gate's own, and one for x
		{"nothing", func(s *builder, x *ir.Value) *ir.Value { return s.node("Sin", []*ir.Value{x}) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBuilder(t, 23)
			x := s.input("x", 2, 3, 8)
			y := c.build(s, x)
			a := s.node("MatMul", []*ir.Value{y, s.weight("a", 8, 5)})
			b := s.node("MatMul", []*ir.Value{y, s.weight("w", 8, 5)})
			s.output("y", s.node("Add", []*ir.Value{a, b}), 2, 3, 5)
			r := equivalent(t, w, smooth, s.save(), 100)
			if r == nil || r.counts()["Mul"] != c.muls {
				t.Fatalf("%v, want %d Mul", r, c.muls)
			}
		})
	}
}

// A shared constant is copied before it is rescaled.
func TestSharedGainsAreCopied(t *testing.T) {
	s := newBuilder(t, 17)
	x, gain := s.input("x", 3, 8), s.uneven("gain", 0, 8)
	y := s.node("LayerNormalization", []*ir.Value{x, gain})
	y = s.node("MatMul", []*ir.Value{y, s.weight("a", 8, 8)})
	s.output("y", s.node("LayerNormalization", []*ir.Value{y, gain}), 3, 8)
	if r := equivalent(t, conform.Start(t), smooth, s.save(), 100); r == nil || r.counts()["Mul"] != 0 {
		t.Fatalf("%+v", r)
	}
}

// Channels that differ by a factor of a hundred quantize badly with dynamic-int8.
func TestSmoothHelpsDynamicInt8(t *testing.T) {
	s := newBuilder(t, 17)
	x := s.node("LayerNormalization", []*ir.Value{s.input("x", 32, 64), s.uneven("gain", 0, 64), s.weight("shift", 64)})
	s.output("y", s.node("MatMul", []*ir.Value{x, s.weight("a", 64, 48)}), 32, 48)
	w, path, dir := conform.Start(t), s.save(), t.TempDir()
	db := map[string]float64{}
	for _, v := range []variant{smooth, auto} {
		even, out := filepath.Join(dir, "smooth.onnx"), filepath.Join(dir, "out.onnx")
		v.apply(t, path, even)
		dyn.apply(t, even, out)
		outputs, err := w.Compare(path, out, conform.Options{})
		if err != nil {
			t.Fatal(err)
		}
		db[fmt.Sprint(v.options)] = conform.LowestSQNR(outputs)
	}
	plain := filepath.Join(dir, "plain.onnx")
	dyn.apply(t, path, plain)
	outputs, err := w.Compare(path, plain, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for options, got := range db {
		if got < conform.LowestSQNR(outputs)+3 {
			t.Errorf("%s: %.1f dB, without %.1f", options, got, conform.LowestSQNR(outputs))
		}
	}
}
