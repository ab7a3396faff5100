package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func step(n int64) *ir.Array { return optest.Array(n, 0) }

// full returns a tensor of this number.
func full(x float32, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = x
	}
	return a
}

// The fraction of zeros has a standard deviation of √(p(1-p)/n); six times that occurs once in 10^9 seeds.
func TestDropoutRatio(t *testing.T) {
	const n = 100000
	for _, ratio := range []float64{0, 0.1, 0.5, 0.9} {
		y := ir.View[float32](results(t, "SeededDropout", 1, []*ir.Array{full(3, n), step(1)},
			ir.FloatAttr("ratio", float32(ratio)))[0])
		zeros := 0
		for _, v := range y {
			if v == 0 {
				zeros++
			} else if want := 3 / (1 - ratio); math.Abs(float64(v)-want) > 1e-6*want {
				t.Fatalf("ratio %v: an element is %v, want 0 or %v", ratio, v, want)
			}
		}
		if got := float64(zeros) / n; math.Abs(got-ratio) > 6*math.Sqrt(ratio*(1-ratio)/n) {
			t.Errorf("the fraction of zeros is %v, want %v", got, ratio)
		}
	}
}

// Masks are equal for the same step and seed, for any number of workers, and independent otherwise.
func TestDropoutMask(t *testing.T) {
	const n = 100000
	mask := func(workers int, at, seed int64) []float32 {
		return ir.View[float32](results(t, "SeededDropout", workers, []*ir.Array{full(1, n), step(at)},
			ir.IntAttr("seed", seed))[0])
	}
	first := mask(1, 5, 9)
	if !slices.Equal(first, mask(3, 5, 9)) {
		t.Error("3 workers give another mask")
	}
	for _, c := range [][2]int64{{6, 9}, {5, 10}, {9, 5}, {-5, 9}} {
		same := 0
		for i, v := range mask(1, c[0], c[1]) {
			if v == first[i] {
				same++
			}
		}
		if math.Abs(float64(same)/n-0.5) > 6*0.5/math.Sqrt(n) {
			t.Errorf("step %d, seed %d: %d of %d elements have the same mask, want half", c[0], c[1], same, n)
		}
	}
}

// Micro-batches have the masks of their parts of the whole batch.
func TestDropoutMaskOfMicroBatches(t *testing.T) {
	const n, parts = 1000, 4
	mask := func(n int64, at int64) []float32 {
		return ir.View[float32](results(t, "SeededDropout", 2, []*ir.Array{full(1, n), optest.Array(int64(5), at)})[0])
	}
	var got []float32
	for i := range int64(parts) {
		got = append(got, mask(n/parts, i)...)
	}
	if !slices.Equal(got, mask(n, 0)) {
		t.Errorf("the masks of %d micro-batches are not that of the batch", parts)
	}
}

func TestRandomOperatorErrors(t *testing.T) {
	x := values[float32](1, 4, 12)
	for _, c := range []struct {
		op, want string
		in       []*ir.Array
		attrs    []*ir.Attr
	}{
		{"SeededDropout", "attribute ratio is 1", []*ir.Array{x, step(1)}, []*ir.Attr{ir.FloatAttr("ratio", 1)}},
		{"SeededDropout", "input step is missing", []*ir.Array{x}, nil},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: c.in, Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.op, err, c.want)
		}
	}
}
