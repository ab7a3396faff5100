package palette

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// restored are the values that e stores for x.
func restored(t *testing.T, e *encoding, x []float32) []float32 {
	t.Helper()
	var parts [3]bytes.Buffer
	out := []io.Writer{&parts[outIndices], &parts[outCodebook], &parts[outScales]}
	if err := e.Recipe().Run(t.Context(), []io.ReaderAt{bytes.NewReader(kernel.Bytes(x))}, out); err != nil {
		t.Fatal(err)
	}
	tensors := make([]*ir.Tensor, len(e.specs("")))
	in := make([]io.ReaderAt, len(parts))
	for i := range parts {
		in[i] = bytes.NewReader(parts[i].Bytes())
	}
	var dense bytes.Buffer
	if err := e.Restore(tensors).Source.(ir.Output).Of.Run(t.Context(), in, []io.Writer{&dense}); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(x))
	copy(kernel.Bytes(got), dense.Bytes())
	return got
}

// The errors of an output's elements cancel, whatever the layout, also where rows and runs are no whole blocks; zeros
// stay zeros.
func TestFeedback(t *testing.T) {
	for _, tt := range []struct {
		shape []int64
		axes  []int
		want  outputs
	}{
		{[]int64{256, 96}, []int{1}, outputs{256, 96, 1}},
		{[]int64{3000, 96}, []int{1}, outputs{3000, 96, 1}}, // several chunks
		{[]int64{96, 256}, []int{0}, outputs{1, 96, 256}},
		{[]int64{400, 10}, []int{1}, outputs{400, 10, 1}},
		{[]int64{10, 403}, []int{0}, outputs{1, 10, 403}},
		{[]int64{24, 16, 3, 3}, []int{0}, outputs{1, 24, 144}},
		{[]int64{24, 16, 3, 3}, []int{1}, outputs{24, 16, 9}},
		{[]int64{32, 16, 4, 4}, []int{1}, outputs{32, 16, 16}},
		{[]int64{2, 160, 24}, []int{0, 2}, outputs{160, 24, 1}},
		{[]int64{2, 24, 160}, []int{0, 1}, outputs{1, 48, 160}},
	} {
		for _, block := range []int64{8, 7} {
			o := outputsOf(tt.shape, tt.axes)
			if o != tt.want {
				t.Errorf("outputs of %v along %v are %v, want %v", tt.shape, tt.axes, o, tt.want)
			}
			r := rand.New(rand.NewPCG(1, 2))
			weight := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: tt.shape}}
			x := make([]float32, weight.Elems())
			for i := range x {
				if x[i] = float32(r.NormFloat64()); i%3 == 0 {
					x[i] = 0
				}
			}
			e := &encoding{Layout: newLayout(tt.shape, -1, 0, block, 16, 1), weight: weight}
			without := restored(t, e, x)
			e.outputs = o
			square, sum := errorsOf(t, tt.shape, tt.axes, x, restored(t, e, x))
			squareWithout, sumWithout := errorsOf(t, tt.shape, tt.axes, x, without)
			if sum > sumWithout/5 || square > 1.2*squareWithout {
				t.Errorf(
					"%v along %v, blocks of %d: squared error %.4g, %.4g without feedback; mean squared sum of errors %.4g, %.4g",
					tt.shape, tt.axes, block, square, squareWithout, sum, sumWithout)
			}
		}
	}
}

// errorsOf are the sum of squared errors, and that of the squares of the sums of errors of each output.
func errorsOf(t *testing.T, shape []int64, axes []int, x, got []float32) (square, sums float64) {
	t.Helper()
	sum := map[int64]float64{}
	for i, v := range x {
		if v == 0 && got[i] != 0 {
			t.Fatalf("element %d, 0, became %g", i, got[i])
		}
		output, left := int64(0), int64(i)
		for axis := len(shape) - 1; axis >= 0; axis-- {
			if slices.Contains(axes, axis) {
				output = output*1000 + left%shape[axis]
			}
			left /= shape[axis]
		}
		d := float64(got[i]) - float64(v)
		square, sum[output] = square+d*d, sum[output]+d
	}
	for _, s := range sum {
		sums += math.Pow(s, 2)
	}
	return square, sums
}
