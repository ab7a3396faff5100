package train

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

type lossCase struct {
	op    string
	in    []*ir.Array
	attrs []*ir.Attr
}

func lossCases() []lossCase {
	x := func(seed uint64) *ir.Array { return values[float64](seed, 3, 4, 5) }
	between := values[float64](9, 3, 1)
	for i, v := range ir.View[float64](between) {
		ir.View[float64](between)[i] = 1 / (1 + math.Exp(-v))
	}
	some := labels(4, 3, 5)
	ir.View[int64](some)[2] = -100
	scale := optest.Array[float32](1)
	keep := ir.ArrayOf([]float32{1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0}, 3, 4) // of the last sample nothing
	flat := values[float64](1, 12, 5)
	return []lossCase{
		{"DistillLoss", []*ir.Array{x(1), x(2), scale, keep},
			[]*ir.Attr{ir.IntAttr("axis", -1), ir.FloatAttr("temperature", 2)}},
		{"DistillLoss", []*ir.Array{flat, values[float64](2, 12, 5), scale, keep}, []*ir.Attr{ir.IntAttr("axis", -1)}},
		{"CosineLoss", []*ir.Array{x(1), x(2), scale, keep}, []*ir.Attr{ir.FloatAttr("weight", 3)}},
		{"CosineLoss", []*ir.Array{x(1), x(2), scale, keep}, []*ir.Attr{ir.IntAttr("axis", -1)}},
		{"MeanSquaredLoss", []*ir.Array{x(1), x(2), scale, keep}, nil},
		{"CrossEntropyLoss", []*ir.Array{values[float64](1, 3, 4), labels(4, 3), scale}, nil},
		{"CrossEntropyLoss", []*ir.Array{x(1), some, scale},
			[]*ir.Attr{ir.FloatAttr("smoothing", 0.1), ir.FloatAttr("weight", 0.3)}},
		{"CrossEntropyLoss", []*ir.Array{x(1), labels(5, 3, 4), scale}, []*ir.Attr{ir.IntAttr("axis", -1)}},
		{"DistillLoss", []*ir.Array{values[float64](1, 3, 4), values[float64](2, 3, 4), scale},
			[]*ir.Attr{ir.FloatAttr("temperature", 2.5)}},
		{"DistillLoss", []*ir.Array{x(1), x(2), scale}, []*ir.Attr{ir.IntAttr("axis", 1)}},
		{"CosineLoss", []*ir.Array{x(1), x(2), scale}, []*ir.Attr{ir.FloatAttr("weight", 3)}},
		{"CosineLoss", []*ir.Array{x(1), x(2), scale}, []*ir.Attr{ir.IntAttr("axis", -1)}},
		{"CosineLoss", []*ir.Array{x(1), x(2), scale}, []*ir.Attr{ir.IntAttr("axis", 1)}},
		{"MeanSquaredLoss", []*ir.Array{x(1), x(2), scale}, nil},
		{"SigmoidCrossEntropyLoss", []*ir.Array{values[float64](1, 3, 1), between, scale}, nil},
	}
}

func TestLossGradients(t *testing.T) {
	for i, c := range lossCases() {
		t.Run(fmt.Sprint(c.op, i), func(t *testing.T) {
			x, got := ir.View[float64](c.in[0]), ir.View[float64](results(t, c.op, 1, c.in, c.attrs...)[1])
			loss := func(k int, at float64) float64 {
				was := x[k]
				defer func() { x[k] = was }()
				x[k] = at
				return ir.View[float64](results(t, c.op, 1, c.in, c.attrs...)[0])[0]
			}
			for k := range x {
				const h = 1e-5
				want := (loss(k, x[k]+h) - loss(k, x[k]-h)) / (2 * h)
				if !(math.Abs(got[k]-want) <= 1e-8*(1+math.Abs(want))) {
					t.Fatalf("gradient %d is %.9g, finite difference %.9g", k, got[k], want)
				}
			}
		})
	}
}

// Single and double precision agree up to rounding errors; only the gradient is scaled.
func TestFloatLosses(t *testing.T) {
	for i, c := range lossCases() {
		want := results(t, c.op, 1, c.in, c.attrs...)
		in := append([]*ir.Array{single(c.in[0]), single(c.in[1]), optest.Scalar[float32](64)}, c.in[3:]...)
		got := results(t, c.op, 1, in, c.attrs...)
		near(t, fmt.Sprint(c.op, i, " loss"), got[0], ir.View[float64](want[0]), 1, 1e-6)
		near(t, fmt.Sprint(c.op, i, " gradient"), got[1], ir.View[float64](want[1]), 64, 1e-6)
	}
}

// single is a with Double rounded to Float.
func single(a *ir.Array) *ir.Array {
	if a.DType != ir.Double {
		return a
	}
	out := ir.NewArray(ir.Float, a.Shape...)
	for i, v := range ir.View[float64](a) {
		ir.View[float32](out)[i] = float32(v)
	}
	return out
}

func near(t *testing.T, what string, got *ir.Array, want []float64, scale, tolerance float64) {
	t.Helper()
	if int(got.Elems()) != len(want) {
		t.Fatalf("%s: %s, want %d elements", what, got, len(want))
	}
	for i, v := range ir.View[float32](got) {
		if w := want[i] * scale; !(math.Abs(float64(v)-w) <= tolerance*(scale+math.Abs(w))) {
			t.Errorf("%s: element %d is %v, want %v", what, i, v, w)
			return
		}
	}
}

func TestIgnoreIndex(t *testing.T) {
	scores, scale := values[float32](1, 2, 3), optest.Scalar[float32](1)
	none := optest.Array[int64](7, 7)
	out := results(t, "CrossEntropyLoss", 1, []*ir.Array{scores, none, scale}, ir.IntAttr("ignore_index", 7))
	near(t, "loss of no rows", out[0], []float64{0}, 1, 0)
	near(t, "gradient of no rows", out[1], make([]float64, 6), 1, 0)

	alone := results(t, "CrossEntropyLoss", 1, []*ir.Array{ir.ArrayOf(ir.View[float32](scores)[:3], 1, 3),
		optest.Array[int64](1), scale})
	both := results(t, "CrossEntropyLoss", 1, []*ir.Array{scores, optest.Array[int64](1, -100), scale})
	same(t, "one row of two", both[:1], alone[:1])
}

// Rows of padding have no gradient and change nothing, whatever they hold: losses are those of the other rows alone.
func TestPaddingCountsNowhere(t *testing.T) {
	x, y, scale := values[float32](1, 2, 3, 4), values[float32](2, 2, 3, 4), optest.Scalar[float32](1)
	keep := ir.ArrayOf([]float32{1, 1, 0, 1, 0, 0}, 2, 3)
	nan := float32(math.NaN())
	for i := range x.Elems() {
		if ir.View[float32](keep)[i/4] == 0 {
			ir.View[float32](x)[i], ir.View[float32](y)[i] = nan, nan
		}
	}
	some := func(a *ir.Array, rows ...int) *ir.Array {
		var out []float32
		for _, r := range rows {
			out = append(out, ir.View[float32](a)[4*r:][:4]...)
		}
		return ir.ArrayOf(out, int64(len(rows)), 4)
	}
	for _, c := range []struct {
		op    string
		attrs []*ir.Attr
	}{{"DistillLoss", []*ir.Attr{ir.IntAttr("axis", -1)}}, {"MeanSquaredLoss", nil},
		{"CosineLoss", []*ir.Attr{ir.IntAttr("axis", -1)}}} {
		got := results(t, c.op, 1, []*ir.Array{x, y, scale, keep}, c.attrs...)
		want := results(t, c.op, 1, []*ir.Array{some(x, 0, 1, 3), some(y, 0, 1, 3), scale}, c.attrs...)
		near(t, c.op, got[0], []float64{float64(ir.View[float32](want[0])[0])}, 1, 1e-7)
		same(t, c.op, []*ir.Array{some(got[1], 0, 1, 3), some(got[1], 2, 4, 5)},
			[]*ir.Array{want[1], ir.NewArray(ir.Float, 3, 4)})
	}
	// Of the vectors of samples the elements of padding are missing.
	vector := func(a *ir.Array, from, to int) *ir.Array {
		return ir.ArrayOf(ir.View[float32](a)[from:to], 1, int64(to-from))
	}
	sum := 0.0
	for _, part := range [][2]int{{0, 8}, {12, 16}} {
		one := results(t, "CosineLoss", 1, []*ir.Array{vector(x, part[0], part[1]), vector(y, part[0], part[1]), scale})
		sum += float64(ir.View[float32](one[0])[0])
	}
	near(t, "cosine of samples", results(t, "CosineLoss", 1, []*ir.Array{x, y, scale, keep})[0], []float64{sum / 2},
		1, 1e-6)
}

// A loss of values that are not numbers is none.
func TestLossesOfNaN(t *testing.T) {
	scale, bad := optest.Scalar[float32](1), ir.ArrayOf([]float32{0, float32(math.NaN()), 1}, 1, 3)
	for _, typ := range []string{"DistillLoss", "CosineLoss", "MeanSquaredLoss", "SigmoidCrossEntropyLoss"} {
		for _, in := range [][]*ir.Array{{bad, bad, scale}, {values[float32](1, 1, 3), bad, scale},
			{bad, values[float32](1, 1, 3), scale}} {
			if y := ir.View[float32](results(t, typ, 1, in)[0])[0]; y == y {
				t.Errorf("%s of NaN is %v", typ, y)
			}
		}
	}
	if y := ir.View[float32](results(t, "CrossEntropyLoss", 1,
		[]*ir.Array{bad, optest.Array[int64](0), scale})[0])[0]; y == y {
		t.Errorf("CrossEntropyLoss of NaN is %v", y)
	}
}

// Scores whose exponentials overflow or underflow.
func TestLossesOfLargeScores(t *testing.T) {
	x, y, scale := optest.Array[float32](500, -500, 0), optest.Array[float32](-500, 500, 0), optest.Scalar[float32](1)
	x.Shape, y.Shape = []int64{1, 3}, []int64{1, 3}
	out := results(t, "CrossEntropyLoss", 1, []*ir.Array{x, optest.Array[int64](1), scale})
	near(t, "cross entropy", out[0], []float64{1000}, 1, 1e-6)
	out = results(t, "DistillLoss", 1, []*ir.Array{x, y, scale})
	near(t, "distillation", out[0], []float64{1000}, 1, 1e-6)
	near(t, "its gradient", out[1], []float64{1, -1, 0}, 1, 1e-6)
	wrong := ir.ArrayOf([]float32{0, 1, 1}, 1, 3)
	out = results(t, "SigmoidCrossEntropyLoss", 1, []*ir.Array{x, wrong, scale})
	near(t, "sigmoid", out[0], []float64{(1000 + math.Ln2) / 3}, 1, 1e-6)
	near(t, "its gradient", out[1], []float64{1. / 3, -1. / 3, -1. / 6}, 1, 1e-6)
}

func TestLossErrors(t *testing.T) {
	x, scale := values[float32](1, 4, 10), optest.Scalar[float32](1)
	for _, c := range []struct {
		op, want string
		in       []*ir.Array
		attrs    []*ir.Attr
	}{
		{"CrossEntropyLoss", "label 12 of sample 3 is out of range: the model has 10 classes",
			[]*ir.Array{x, optest.Array[int64](0, 1, 2, 12), scale}, nil},
		{"CrossEntropyLoss", "label -1 of sample 0", []*ir.Array{x, optest.Array[int64](-1, 1, 2, 3), scale}, nil},
		{"CrossEntropyLoss", "input labels has shape [3], want [4]", []*ir.Array{x, labels(3, 3), scale}, nil},
		{"CrossEntropyLoss", "axis 1 is out of range", []*ir.Array{values[float32](1, 4), labels(3, 3), scale}, nil},
		{"CrossEntropyLoss", "no classes", []*ir.Array{values[float32](1, 4, 0), labels(3, 4), scale}, nil},
		{"CrossEntropyLoss", "attribute smoothing is 1", []*ir.Array{x, labels(3, 4), scale},
			[]*ir.Attr{ir.FloatAttr("smoothing", 1)}},
		{"CrossEntropyLoss", "input scale", []*ir.Array{x, labels(3, 4), x}, nil},
		{"DistillLoss", "attribute temperature is 0", []*ir.Array{x, x, scale},
			[]*ir.Attr{ir.FloatAttr("temperature", 0)}},
		{"DistillLoss", "input target is float[10,4]", []*ir.Array{x, values[float32](1, 10, 4), scale}, nil},
		{"CosineLoss", "scalar", []*ir.Array{scale, scale, scale}, nil},
		{"MeanSquaredLoss", "input target is missing", []*ir.Array{x}, nil},
		{"MeanSquaredLoss", "input keep is float[3]", []*ir.Array{x, x, scale, values[float32](1, 3)}, nil},
		{"DistillLoss", "input keep is float[8]", []*ir.Array{x, x, scale, values[float32](1, 8)}, nil},
		{"CrossEntropyLoss", "labels of padding are ignore_index",
			[]*ir.Array{x, labels(3, 4), scale, values[float32](1, 4)}, nil},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: c.in, Attrs: c.attrs,
			Outputs: 2})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.op, err, c.want)
		}
	}
}
