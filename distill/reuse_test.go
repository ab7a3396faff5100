package distill

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// TestReusedBatches: training and evaluation in the memory of one batch, which is overwritten between two batches, is
// bit-identical to training in which each batch has memory of its own.
func TestReusedBatches(t *testing.T) {
	tokens, data := []string{"data", tokensOf(t), "dim", "tokens=32", "loss", "next-token", "metric", "perplexity",
		"batch", "32"}, []string{"data", samples(t, 64), "labels", "label"}
	teachers := []*ir.Model{network(2, features, 16, classes), network(3, features, 24, classes)}
	for name, c := range map[string]struct {
		model    func() *ir.Model
		teachers []*ir.Model
		o        []string
	}{
		"labels":         {small, nil, append(slices.Clone(data), "ema", "0.9", "accumulate", "2")},
		"metric":         {small, teachers[:1], append(slices.Clone(data), "metric", "f1")},
		"teachers":       {small, teachers, append(slices.Clone(data), "alpha", "0.5", "features", "hidden")},
		"cached teacher": {small, teachers[:1], append(slices.Clone(data), "cache-teacher", "true")},
		"tokens":         {decoder, nil, tokens},
	} {
		run := func(prefetch string, poison bool) map[string][]byte {
			e := ir.NewEval(t.TempDir())
			defer e.Close()
			tr := newTrainer(c.model(), e, serial,
				parse(t, append([]string{"epochs", "3", "batch", "16", "lr", "0.01", "prefetch", prefetch}, c.o...)...))
			defer tr.close()
			if len(c.teachers) > 0 {
				tr.settings.Teacher = slices.Repeat([]string{"teacher.onnx"}, len(c.teachers))
			}
			if err := tr.prepare(t.Context(), c.teachers); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if poison {
				tr.loader.set.PoisonReused()
			}
			if err := tr.train(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out := map[string][]byte{}
			for _, w := range tr.params.weights {
				out[w.name] = w.array.Data
			}
			return out
		}
		equal(t, run("0", true), run("1000", false), name)
	}
}

// small is a network for samples.
func small() *ir.Model { return network(1, features, 32, 16, classes) }
