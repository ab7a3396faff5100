package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// stored returns x after QuantizeActivation and DequantizeActivation in a step.
func stored(t *testing.T, x *ir.Array, step int64, workers int, attrs ...*ir.Attr) []float32 {
	t.Helper()
	q := results(t, "QuantizeActivation", workers, []*ir.Array{x, optest.Array(step, 0)}, attrs...)[:1]
	return ir.View[float32](results(t, "DequantizeActivation", workers, q,
		append(attrs, ir.IntsAttr("shape", x.Shape...))...)[0])
}

// The error is less than the scale of the element's block; its mean over steps is 0. The minimum of a block, such as
// the zeros of Relu, is exact.
func TestQuantizedActivations(t *testing.T) {
	const block, steps = 64, 400
	x := values[float32](1, 7, 301)
	v := ir.View[float32](x)
	for i := range v {
		v[i] = max(v[i], 0) * float32(1+i/block)
	}
	sums := make([]float64, len(v))
	for step := range int64(steps) {
		for i, y := range stored(t, x, step, 2, ir.IntAttr("block", block)) {
			most := float32(0)
			for _, w := range v[i/block*block : min(len(v), (i/block+1)*block)] {
				most = max(most, w)
			}
			if off := math.Abs(float64(y - v[i])); off > 1.001*float64(most)/255 || v[i] == 0 && y != 0 {
				t.Fatalf("element %d of a block up to %v: %v becomes %v", i, most, v[i], y)
			}
			sums[i] += float64(y-v[i]) / float64(most) * 255
		}
	}
	for i, sum := range sums {
		if mean := sum / steps; math.Abs(mean) > 5*0.5/math.Sqrt(steps) {
			t.Errorf("element %d: the mean error is %.3f of the scale", i, mean)
		}
	}
}

// Quantized activations depend on the step and the seed, and not on the number of worker threads.
func TestQuantizedActivationsAreDeterministic(t *testing.T) {
	x := values[float32](2, 50000)
	want := stored(t, x, 3, 1)
	for _, c := range []struct {
		step    int64
		workers int
		attrs   []*ir.Attr
		same    bool
	}{{3, 3, nil, true}, {4, 1, nil, false}, {3, 1, []*ir.Attr{ir.IntAttr("seed", 1)}, false}} {
		got, differ := stored(t, x, c.step, c.workers, c.attrs...), false
		for i := range want {
			differ = differ || got[i] != want[i]
		}
		if differ == c.same {
			t.Errorf("step %d, %d workers, %v: equal is %v", c.step, c.workers, c.attrs, !differ)
		}
	}
}

// Blocks of equal elements are exact; those that are not finite become NaN, and no others.
func TestQuantizedActivationsOfSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := optest.Array(5, 5, inf, 0, nan, 1, 1e-45, 0, math.MaxFloat32, -math.MaxFloat32, -3)
	got := stored(t, x, 0, 1, ir.IntAttr("block", 2))
	want := []float32{5, 5, nan, nan, nan, nan, 0, 0, nan, nan, -3}
	for i, w := range want {
		if got[i] != w && (w == w || got[i] == got[i]) {
			t.Errorf("element %d, %v, becomes %v, want %v", i, ir.View[float32](x)[i], got[i], w)
		}
	}
}

// Nodes with random defects return an error, or a result.
func TestMalformedQuantizedActivationsDoNotPanic(t *testing.T) {
	x := values[float32](1, 7, 31)
	quantize := optest.Case{Domain: domain, Type: "QuantizeActivation", Version: 1, In: []*ir.Array{x, step(1)},
		Outputs: 1, Workers: 2}
	in, err := optest.Run(Ops(), quantize)
	if err != nil {
		t.Fatal(err)
	}
	dequantize := optest.Case{Domain: domain, Type: "DequantizeActivation", Version: 1, In: in,
		Attrs: []*ir.Attr{ir.IntsAttr("shape", 7, 31)}, Outputs: 1, Workers: 2}
	for _, c := range []optest.Case{quantize, dequantize} {
		for seed := range uint64(400) {
			broken := c.Malformed(rand.New(rand.NewPCG(seed, 1)),
				optest.Defects{Ints: []string{"block", "seed"}, Lists: []string{"shape"}})
			if text := optest.Panic(optest.Row(Ops(), c), broken); text != "" {
				t.Fatalf("%v: %s", broken, text)
			}
		}
	}
}
