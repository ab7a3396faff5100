package prune

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Biases are those of operators and those that Add adds to a product; other constants of Add are none. They may be
// behind views.
func TestBiases(t *testing.T) {
	for _, m := range []*pass.Method{l1Method, l1GlobalMethod, randomMethod} {
		for _, biases := range []string{"true", "false"} {
			b := newBench(t)
			x := b.typedInput(1, 2)
			w := b.weight("w", ir.Float, []int64{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
			own, added, shift := b.weight("own", ir.Float, []int64{4}, 9, 1, 8, 2),
				b.weight("added", ir.Float, []int64{4}, 9, 1, 8, 2), b.weight("shift", ir.Float, []int64{4}, 9, 1, 8, 2)
			y := b.node("Add", []*ir.Value{b.node("MatMul", []*ir.Value{x, w}), b.node("Identity", []*ir.Value{added})})
			b.g.AddOutput(b.node("Add", []*ir.Value{b.node("Relu", []*ir.Value{y}), shift}))
			b.g.AddOutput(b.node("Gemm", []*ir.Value{x, w, b.node("Identity", []*ir.Value{own})}))
			b.run(m, "amount", "1", "biases", biases)
			for v, want := range map[*ir.Value]bool{w: true, own: biases == "true", added: biases == "true", shift: false} {
				if pruned := !slices.ContainsFunc(b.values(v), func(x float64) bool { return x != 0 }); pruned != want {
					t.Errorf("%s, biases %s: %s pruned: %t", m.Name, biases, v.Name, pruned)
				}
			}
		}
	}
}
