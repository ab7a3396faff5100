package train

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// results runs an operator of this package with two outputs.
func results(t *testing.T, typ string, workers int, in []*ir.Array, attrs ...*ir.Attr) []*ir.Array {
	t.Helper()
	out, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: typ, Version: 1, In: in, Attrs: attrs, Outputs: 2,
		Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// values returns normally distributed numbers.
func values[T number](seed uint64, shape ...int64) *ir.Array {
	var zero [0]T
	a := ir.NewArray(ir.ArrayOf(zero[:], 0).DType, shape...)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range ir.View[T](a) {
		ir.View[T](a)[i] = T(r.NormFloat64())
	}
	return a
}

// quantizedValues and scales are states of Adam8Update.
func quantizedValues(n int64) *ir.Array {
	a := ir.NewArray(ir.Uint8, n)
	for i := range a.Data {
		a.Data[i] = byte(i * 37)
	}
	return a
}

func scales(n int64) *ir.Array {
	a := ir.NewArray(ir.Float, n)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(i + 1)
	}
	return a
}

// labels cycles through the classes.
func labels(classes int, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Int64, shape...)
	for i := range ir.View[int64](a) {
		ir.View[int64](a)[i] = int64(i*7+3) % int64(classes)
	}
	return a
}

func clones(in []*ir.Array) []*ir.Array {
	out := make([]*ir.Array, len(in))
	for i, a := range in {
		if a != nil {
			out[i] = a.Clone()
		}
	}
	return out
}

func same(t *testing.T, what string, got, want []*ir.Array) {
	t.Helper()
	for i := range want {
		if want[i] != nil && !bytes.Equal(got[i].Data, want[i].Data) {
			t.Errorf("%s: array %d differs", what, i)
		}
	}
}

// Results are bit-identical for any number of workers, with tensors larger than a block.
func TestOperatorsAreDeterministic(t *testing.T) {
	scale, hyper := optest.Scalar[float32](8), optest.Array[float32](0.01, 3, 0.5, 0.1)
	big := func(seed uint64) *ir.Array { return values[float32](seed, 60, 1001) }
	positive := big(4)
	for i, v := range ir.View[float32](positive) {
		ir.View[float32](positive)[i] = v * v
	}
	for _, c := range []struct {
		op    string
		in    []*ir.Array
		attrs []*ir.Attr
	}{
		{"CrossEntropyLoss", []*ir.Array{big(1), labels(1001, 60), scale}, []*ir.Attr{ir.FloatAttr("smoothing", 0.1)}},
		{"CrossEntropyLoss", []*ir.Array{values[float32](1, 20, 7, 300), labels(7, 20, 300), scale}, nil},
		{"DistillLoss", []*ir.Array{big(1), big(2), scale}, []*ir.Attr{ir.FloatAttr("temperature", 4)}},
		{"CosineLoss", []*ir.Array{big(1), big(2), scale}, nil},
		{"MeanSquaredLoss", []*ir.Array{big(1), big(2), scale}, nil},
		{"SigmoidCrossEntropyLoss", []*ir.Array{big(1), big(2), scale}, nil},
		{"SGDUpdate", []*ir.Array{big(1), big(2), big(3), hyper}, []*ir.Attr{ir.FloatAttr("momentum", 0.9)}},
		{"AdamUpdate", []*ir.Array{big(1), big(2), big(3), positive, hyper},
			[]*ir.Attr{ir.FloatAttr("max_norm", 1), ir.IntAttr("norm_axis", 1)}},
		{"Adam8Update", []*ir.Array{big(1), big(2), quantizedValues(60060), quantizedValues(60060), scales(235),
			scales(235), hyper}, nil},
		{"AccumulateGrad", []*ir.Array{big(1), big(2)}, nil},
		{"SumSquares", []*ir.Array{big(1), big(2)}, nil},
		{"SeededDropout", []*ir.Array{big(1), step(1)}, nil},
		{"StoreHalf", []*ir.Array{big(1)}, nil},
		{"SharedWeight", []*ir.Array{values[float32](1, 16), sharedIndices(16), scales(60060 / 60)},
			[]*ir.Attr{ir.IntAttr("block", 60)}},
		{"SharedWeightGrad", []*ir.Array{sharedIndices(16), big(1), scales(60060 / 60)},
			[]*ir.Attr{ir.IntAttr("block", 60), ir.IntAttr("entries", 16)}},
	} {
		in := clones(c.in)
		want := results(t, c.op, 1, in, c.attrs...)
		for _, workers := range []int{2, 3} {
			mine := clones(c.in)
			got := results(t, c.op, workers, mine, c.attrs...)
			same(t, c.op+", outputs", got[:1], want[:1])
			if got[1] != nil {
				same(t, c.op+", gradient", got[1:], want[1:])
			}
			same(t, c.op+", inputs", mine, in)
		}
	}
}

// Operators write only the inputs in Writes of their row.
func TestWrites(t *testing.T) {
	a := func(seed uint64) *ir.Array { return values[float32](seed, 5, 7) }
	hyper, scale := optest.Array[float32](0.1, 1, 1, 0.1), optest.Scalar[float32](1)
	inputs := map[string][]*ir.Array{
		"CrossEntropyLoss":        {a(1), labels(7, 5), scale},
		"DistillLoss":             {a(1), a(2), scale},
		"CosineLoss":              {a(1), a(2), scale},
		"MeanSquaredLoss":         {a(1), a(2), scale},
		"SigmoidCrossEntropyLoss": {a(1), a(2), scale},
		"SGDUpdate":               {a(1), a(2), a(3), hyper},
		"AdamUpdate":              {a(1), a(2), a(3), ir.ArrayOf(make([]float32, 35), 5, 7), hyper},
		"Adam8Update":             {a(1), a(2), quantizedValues(35), quantizedValues(35), scales(1), scales(1), hyper},
		"AccumulateGrad":          {a(1), a(2)},
		"SumSquares":              {a(1), a(2)},
		"ClipFactor":              {hyper, scale},
		"SeededDropout":           {a(1), step(1)},
		"StraightThrough":         {a(1), a(2)},
		"SharedWeight":            {ir.ArrayOf([]float32{1, 2}, 2), ir.ArrayOf(make([]int32, 35), 5, 7)},
		"SharedWeightGrad":        {ir.ArrayOf(make([]int32, 35), 5, 7), a(1)},
		"Offload":                 {a(1)},
		"Restore":                 {quantizedValues(1)},
		"StoreHalf":               {a(1)},
		"LoadHalf":                {ir.NewArray(ir.Float16, 9)},
		"QuantizeActivation":      {a(1), step(1)},
		"DequantizeActivation":    {ir.NewArray(ir.Uint8, 43)},
	}
	path := filepath.Join(t.TempDir(), "values")
	if err := os.WriteFile(path, make([]byte, 200), 0o600); err != nil {
		t.Fatal(err)
	}
	attrs := []*ir.Attr{
		momentum, ir.FloatAttr("max_norm", 1), ir.IntAttr("height", 1), ir.IntAttr("width", 7),
		ir.StringAttr("path", path), ir.IntAttr("entries", 2), ir.IntAttr("dtype", int64(ir.Float)),
		ir.IntsAttr("shape", 5, 7),
	}
	for _, row := range Ops() {
		before := inputs[row.Type]
		if before == nil {
			t.Errorf("%s is not tested", row.Type)
			continue
		}
		in := clones(before)
		results(t, row.Type, 1, in, attrs...)
		for i := range in {
			changed, declared := !bytes.Equal(in[i].Data, before[i].Data), false
			for _, k := range row.Writes {
				declared = declared || k == i
			}
			if changed != declared {
				t.Errorf("%s: input %d changed: %v, declared: %v", row.Type, i, changed, declared)
			}
		}
	}
}
