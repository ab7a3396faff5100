package distill

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// singleSample returns a network with a fixed batch size of 1.
func singleSample(seed uint64) *ir.Model {
	m := network(seed, features, 32, classes)
	g := m.Graph
	x := g.Inputs[0]
	x.Type.Shape[0] = ir.Dim{N: 1}
	first := g.First()
	shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{2}},
		Source: ir.Ints(1, features)})
	first.SetInput(0, g.Insert(first, "Reshape", []*ir.Value{x, shape}))
	g.Outputs[0].Type.Shape[0] = ir.Dim{N: 1}
	return m
}

// TestFixedBatchSize: a student with a fixed batch size of 1 learns the same as one with a dynamic batch size, from a
// teacher of either kind, and in batches too: its Reshape allows that.
func TestFixedBatchSize(t *testing.T) {
	data := samples(t, 300)
	weight := func(student, teacher *ir.Model) []float32 {
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		tr := newTrainer(student, e, 2, parse(t, "data", data, "labels", "label", "epochs", "1", "alpha", "0.5"))
		defer tr.close()
		if err := tr.prepare(t.Context(), []*ir.Model{teacher}); err != nil {
			t.Fatal(err)
		}
		if got := tr.layout.microBatch(); got != tr.layout.batch {
			t.Errorf("%d samples are computed at once, want the batch size, %d", got, tr.layout.batch)
		}
		if err := tr.train(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ir.View[float32](tr.params.weights[0].array)
	}
	want := weight(network(1, features, 32, classes), network(2, features, 32, classes))
	for _, teacher := range []*ir.Model{singleSample(2), network(2, features, 32, classes)} {
		got := weight(singleSample(1), teacher)
		for i := range want {
			if d := got[i] - want[i]; d > 1e-4 || d < -1e-4 {
				t.Fatalf("weight %d is %g, want %g", i, got[i], want[i])
			}
		}
	}
}
