package engine_test

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// Transposes before a MatMul need no copy, unless they have other consumers.
func TestTransposesBeforeMatMulAreFused(t *testing.T) {
	weight := make([]float32, 24*5)
	for i := range weight {
		weight[i] = float32(i%7) - 3
	}
	for name, c := range map[string]struct {
		build func(b *builder, x *ir.Value) *ir.Value // of x, [batch, tokens, 24]
		left  bool
	}{
		"left": {build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("MatMul", b.transpose(x, 0, 2, 1), x)
		}},
		"right": {build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("MatMul", x, b.transpose(x, 0, 2, 1))
		}},
		"reversed": {build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("MatMul", b.op("Relu", b.op("Reshape", x, b.ints(-1, 24))),
				b.op("Transpose", b.op("Reshape", x, b.ints(-1, 24))))
		}},
		"reversed, of unknown rank": {left: true, build: func(b *builder, x *ir.Value) *ir.Value {
			x = b.Insert(nil, "ReduceMean", []*ir.Value{x}, ir.IntsAttr("axes", 0), ir.IntAttr("keepdims", 0))
			return b.op("MatMul", b.op("Transpose", x), b.floats([]int64{6, 1}, 1, 2, 3, 4, 5, 6))
		}},
		"heads": {build: func(b *builder, x *ir.Value) *ir.Value {
			x = b.op("Reshape", x, b.ints(0, 0, 3, 8))
			return b.op("MatMul", b.transpose(x, 0, 2, 1, 3), b.transpose(x, 0, 2, 3, 1))
		}},
		"weight with bias": {build: func(b *builder, x *ir.Value) *ir.Value {
			y := b.op("MatMul", x, b.transpose(b.floats([]int64{5, 24}, weight...), 1, 0))
			return b.op("Relu", b.op("Add", y, b.floats([]int64{5}, 1, 2, 3, 4, 5)))
		}},
		"last axis leads": {left: true, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("MatMul", b.transpose(x, 2, 0, 1), b.floats([]int64{6, 1}, 1, 2, 3, 4, 5, 6))
		}},
		"read twice": {left: true, build: func(b *builder, x *ir.Value) *ir.Value {
			y := b.transpose(x, 0, 2, 1)
			b.output(b.op("Relu", y))
			return b.op("MatMul", y, x)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			steps := fusedSteps(t, c.build)
			if slices.Contains(steps, "Transpose") != c.left {
				t.Errorf("steps: %v", steps)
			}
		})
	}
}

// fusedSteps compares a model of x, [batch, tokens, 24], with the one that is not fused, and returns its operators.
func fusedSteps(t *testing.T, build func(b *builder, x *ir.Value) *ir.Value) []string {
	t.Helper()
	return fusedStepsWithin(t, tolerance{Relative: 1e-5, Absolute: 1e-5}, build)
}

func fusedStepsWithin(t *testing.T, tol tolerance, build func(b *builder, x *ir.Value) *ir.Value) []string {
	t.Helper()
	model := func() *ir.Model {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		b := &builder{m.Graph}
		b.output(build(b, b.input("q", ir.Float, "batch", "tokens", "24")))
		return m
	}
	in := map[string]*ir.Array{"q": pattern{}.inputs(2, 6, 6)["q"]}
	want, _ := runModel(t, model(), in, engine.Options{NoFusion: true})
	got, steps := runModel(t, model(), in, engine.Options{Workers: 2})
	for name, w := range want {
		if err := tol.differ(w, got[name]); err != nil {
			t.Errorf("output %q: %v", name, err)
		}
	}
	return steps
}
