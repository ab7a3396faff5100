package quantize

import (
	"context"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// tokens is a transformer and the samples it is for.
const tokens = "../fixtures/transformer_tokens.npz"

// outputsOf are the elements of all outputs of m for the last samples.
func outputsOf(t *testing.T, samples string, m *ir.Model) (all []float32) {
	t.Helper()
	set, err := dataset.Open(samples, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e, err := engine.Open(context.Background(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var order dataset.Order
	for i := set.Len() / 2; i < set.Len(); i++ {
		order.Index = append(order.Index, i)
	}
	for b, err := range set.Batches(context.Background(), order) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Run(context.Background(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Graph.Outputs {
			all = append(all, ir.View[float32](out[v.Name])...)
		}
	}
	return all
}

// solved is the algorithm as a user asks for it.
func solved(options ...string) variant {
	return variant{WeightInt4, append([]string{"algo=gptq"}, options...)}
}

// Every output is valid, smaller, of the same interface, and runs where the original does.
func TestGPTQHolds(t *testing.T) {
	w := conform.Start(t)
	for _, path := range conform.Fixtures(t) {
		t.Run(label(path), func(t *testing.T) { try(t, w, solved(), path) })
	}
	for _, v := range []variant{solved("symmetric", "act-order=false"), solved("per-channel"), solved("weight-type=int4", "block=16"), {WeightInt2, []string{"algo=gptq"}}, {WeightInt8, []string{"algo=gptq", "block=64"}}} {
		t.Run(v.String(), func(t *testing.T) { try(t, w, v, fixture("transformer")) })
	}
}
