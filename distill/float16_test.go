package distill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// convolutional returns a convolutional model with BatchNormalization of the test data.
func convolutional() *ir.Model {
	r := rand.New(rand.NewPCG(3, 8))
	m := ir.NewModel()
	m.IRVersion = 9
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: features}}}
	g.Inputs = []*ir.Value{x}
	weight := func(shape ...int64) *ir.Value { return g.AddConst("w", random(r, shape...)) }
	each := func(v float32, n int) *ir.Value {
		all := make([]float32, n)
		for i := range all {
			all[i] = v
		}
		return g.AddConst("s", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{int64(n)}},
			Source: ir.Floats(all...)})
	}
	layer := func(y *ir.Value, in, out int64) *ir.Value {
		y = g.Insert(nil, "Conv", []*ir.Value{y, weight(out, in, 3, 3)}, ir.IntsAttr("pads", 1, 1, 1, 1))
		n := int(out)
		return g.Insert(nil, "BatchNormalization", []*ir.Value{y, each(1, n), each(0, n), each(0, n), each(1, n)})
	}
	shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}},
		Source: ir.Ints(-1, 2, 8, 8)})
	y := g.Insert(nil, "Reshape", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight(features, 128)}), shape})
	y = g.Insert(nil, "Relu", []*ir.Value{layer(y, 2, 16)})
	for range 3 {
		z := layer(g.Insert(nil, "Relu", []*ir.Value{layer(y, 16, 16)}), 16, 16)
		y = g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "Add", []*ir.Value{z, y})})
	}
	y = g.Insert(nil, "Flatten", []*ir.Value{g.Insert(nil, "GlobalAveragePool", []*ir.Value{y})})
	y = g.Insert(nil, "MatMul", []*ir.Value{y, weight(16, classes)})
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: classes}}}
	g.AddOutput(y)
	return m
}

// Training with float16 activations has the same loss as with float32, and is deterministic.
func TestFloat16Storage(t *testing.T) {
	base := []string{"data", samples(t, 240), "labels", "label", "batch", "32", "epochs", "3", "validate", "0",
		"batch-statistics", "true", "optimizer", "momentum"}
	learn := func(workers int, o ...string) (learned map[string][]byte, loss float64) {
		m := convolutional()
		res, err := tune(t, m, workers, append(base, o...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range res.Trainings[0].Loss {
			loss += p.Y / float64(len(res.Trainings[0].Loss))
		}
		return weights(t, m), loss
	}
	whole, want := learn(2)
	half, got := learn(2, "storage", "float16")
	if fmt.Sprint(whole) == fmt.Sprint(half) {
		t.Error("float16 storage changed no weight")
	}
	_, again := learn(2, "storage", "float16", "checkpoint", "auto")
	for _, loss := range []float64{got, again} {
		if off := math.Abs(loss/want - 1); !(off < 0.01) {
			t.Errorf("mean loss %.4f, %.4f with float32", loss, want)
		}
	}
	for _, workers := range []int{1, 3} {
		other, _ := learn(workers, "storage", "float16")
		equal(t, other, half, fmt.Sprint(workers, " workers"))
	}
}

// Float16 storage halves the arena nearly, with and without activation checkpointing.
func TestFloat16StorageArena(t *testing.T) {
	base := []string{"data", samples(t, 600), "labels", "label", "batch", "512", "validate", "0",
		"batch-statistics", "true"}
	for checkpoint, ratio := range map[string]float64{"none": 0.6, "auto": 0.7} {
		arena := func(storage string) float64 {
			return float64(ready(t, convolutional(), append(base, "checkpoint", checkpoint, "storage", storage)...).step.arena())
		}
		if whole, half := arena("float32"), arena("float16"); half > ratio*whole {
			t.Errorf("checkpoint %s: arena of %.0f bytes, %.0f with float32", checkpoint, half, whole)
		}
	}
}

// float16Models have convolutions that are computed by Winograd's transform and by products, and no convolution.
var float16Models = map[string]func() *ir.Model{
	"convolutional": convolutional,
	"linear":        func() *ir.Model { return network(4, features, 96, 96, classes) },
}

// The validation loss after training is that of float32 storage.
func TestFloat16StorageValidationLoss(t *testing.T) {
	for name, model := range float16Models {
		base := []string{"data", samples(t, 320), "labels", "label", "batch", "40", "epochs", "4", "validate", "0.25",
			"batch-statistics", "true", "lr", "3e-3"}
		validation := func(storage string) float64 {
			res, err := tune(t, model(), 2, append(base, "storage", storage)...)
			if err != nil {
				t.Fatal(err)
			}
			points := res.Trainings[0].ValidationLoss
			if first, last := points[0].Y, points[len(points)-1].Y; !(last < 0.8*first) {
				t.Errorf("%s, %s: validation loss %.4f, %.4f before training", name, storage, last, first)
			}
			return points[len(points)-1].Y
		}
		if whole, half := validation("float32"), validation("float16"); !(math.Abs(half-whole) < 0.01*whole) {
			t.Errorf("%s: validation loss %.5f, %.5f with float32", name, half, whole)
		}
	}
}

// Float16 storage never plans more memory than float32 storage.
func TestFloat16StorageNeverPlansMore(t *testing.T) {
	for name, model := range float16Models {
		arena := func(storage, batch string) int64 {
			o := []string{"data", samples(t, 600), "labels", "label", "batch", batch, "validate", "0", "batch-statistics",
				"true", "storage", storage}
			return ready(t, model(), o...).step.arena()
		}
		for _, batch := range []string{"32", "512"} {
			if whole, half := arena("float32", batch), arena("float16", batch); half > whole {
				t.Errorf("%s, batch size %s: arena of %d bytes, %d with float32", name, batch, half, whole)
			}
		}
	}
}
