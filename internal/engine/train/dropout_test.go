package train

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func step(n int64) *ir.Array { return optest.Array(n) }

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
		y := ir.View[float32](results(t, "SeededDropout", 1, []*ir.Array{full(3, n), step(1)}, ir.FloatAttr("ratio", float32(ratio)))[0])
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
		return ir.View[float32](results(t, "SeededDropout", workers, []*ir.Array{full(1, n), step(at)}, ir.IntAttr("seed", seed))[0])
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

// Each output sample is the input translated within the limit, padded with zeros.
func TestShift(t *testing.T) {
	x := values[float32](1, 200, 2, 5, 4)
	seen := map[[2]int]bool{}
	for _, shape := range [][]int64{{200, 2, 5, 4}, {200, 40}} {
		in := &ir.Array{DType: ir.Float, Shape: shape, Data: x.Data}
		y := results(t, "AugmentShift", 2, []*ir.Array{in, step(3)}, ir.IntAttr("shift", 2), ir.IntAttr("height", 5), ir.IntAttr("width", 4))[0]
		for i := range 200 {
			down, right, ok := distance(ir.View[float32](x)[i*40:][:40], ir.View[float32](y)[i*40:][:40])
			if !ok {
				t.Fatalf("shape %v: sample %d is not a translation", shape, i)
			}
			seen[[2]int{down, right}] = true
		}
	}
	if len(seen) != 25 {
		t.Errorf("%d distances of 25 occur in 200 samples", len(seen))
	}
}

// distance returns the translation from x to y, planes of 5 × 4.
func distance(x, y []float32) (down, right int, ok bool) {
	for down := -2; down <= 2; down++ {
		for right := -2; right <= 2; right++ {
			moved := make([]float32, len(y))
			for i := range y {
				r, c := i/4%5-down, i%4-right
				if r >= 0 && r < 5 && c >= 0 && c < 4 {
					moved[i] = x[i/20*20+r*4+c]
				}
			}
			if slices.Equal(moved, y) {
				return down, right, true
			}
		}
	}
	return 0, 0, false
}

func TestShiftBeyondImage(t *testing.T) {
	x := full(1, 50, 1, 2, 3)
	y := results(t, "AugmentShift", 1, []*ir.Array{x, step(1)}, ir.IntAttr("shift", 1<<40))[0]
	if bytes.Equal(x.Data, y.Data) {
		t.Error("nothing was moved")
	}
	same(t, "shift of 0", results(t, "AugmentShift", 1, []*ir.Array{x, step(1)})[:1], []*ir.Array{x})
}

func TestFlip(t *testing.T) {
	x := values[float32](1, 400, 3, 2, 5)
	y := ir.View[float32](results(t, "AugmentFlip", 2, []*ir.Array{x, step(3)})[0])
	flipped := 0
	for i := range 400 {
		a, b := slices.Clone(ir.View[float32](x)[i*30:][:30]), y[i*30:][:30]
		if slices.Equal(a, b) {
			continue
		}
		flipped++
		for line := range slices.Chunk(a, 5) {
			slices.Reverse(line)
		}
		if !slices.Equal(a, b) {
			t.Fatalf("sample %d is neither unchanged nor mirrored", i)
		}
	}
	if math.Abs(float64(flipped)-200) > 60 {
		t.Errorf("%d of 400 samples are mirrored", flipped)
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
		{"AugmentShift", "planes of 5×3", []*ir.Array{x, step(1)}, []*ir.Attr{ir.IntAttr("height", 5), ir.IntAttr("width", 3)}},
		{"AugmentShift", "planes of 0×3", []*ir.Array{x, step(1)}, []*ir.Attr{ir.IntAttr("height", 0), ir.IntAttr("width", 3)}},
		{"AugmentShift", "attribute shift is -1", []*ir.Array{x, step(1)}, []*ir.Attr{ir.IntAttr("shift", -1), ir.IntAttr("height", 4), ir.IntAttr("width", 3)}},
		{"AugmentFlip", "not a batch of images", []*ir.Array{values[float32](1, 4), step(1)}, nil},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: c.in, Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.op, err, c.want)
		}
	}
}
