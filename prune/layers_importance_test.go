package prune_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/prune"
)

// The layer that adds nothing to the residual is removed, and the result is the model built without it. The last layer
// stays if only the normalized sum after it is computed.
func TestLayerOfLeastInfluenceIsRemoved(t *testing.T) {
	w := conform.Start(t)
	for name, build := range map[string]func([]int) *ir.Model{
		"sums":     sums,
		"separate": separate("past_key_values.%d.%s", "present.%d.%s", func(int) int { return 0 }),
		"together": together,
		"embedded": embedded,
	} {
		for at := range 4 {
			if at == 3 && (name == "sums" || name == "embedded") {
				continue
			}
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				kept := []int{0, 1, 2}
				m := build(slices.Insert(slices.Clone(kept), at, 8))
				for _, v := range m.Graph.Consts() {
					if slices.Contains([]string{"8.o", "8.mlp.down", "8.o.b", "8.mlp.b"}, v.Name) {
						v.Const.Source = make(ir.Mem, v.Const.Bytes())
					}
				}
				got, _, eval := changed(t, saved(t, m, nil), prune.Layers{}.Method(), "amount", "0.25", "importance", "cosine")
				outputs, err := w.Compare(saved(t, build(kept), nil), saved(t, got, eval), conform.Options{Random: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range outputs {
					if !o.Equal {
						t.Errorf("%s: %.1f dB", o.Name, o.SQNR)
					}
				}
			})
		}
	}
}
