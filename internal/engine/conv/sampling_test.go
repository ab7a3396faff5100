package conv

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Positions and weights of resizing a line of 4 elements, derived by hand from the formulas of the specification.
func TestResizeOfALine(t *testing.T) {
	x := ir.ArrayOf([]float32{10, 20, 30, 40}, 4)
	for _, c := range []struct {
		a     attrs
		sizes int64
		want  []float64
	}{
		{attrs{"mode": "linear"}, 8, []float64{10, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40}},
		{attrs{"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, 8,
			[]float64{10, 15, 20, 25, 30, 35, 40, 40}},
		{attrs{"mode": "linear", "coordinate_transformation_mode": "align_corners"}, 7,
			[]float64{10, 15, 20, 25, 30, 35, 40}},
		{attrs{"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, 1, []float64{10}},
		{attrs{"mode": "linear"}, 2, []float64{15, 35}},
		{attrs{"mode": "linear", "antialias": 1}, 2,
			[]float64{(10*3 + 20*3 + 30 + 10) / 8.0, (40 + 30*3 + 20 + 40*3) / 8.0}},
		{attrs{"mode": "nearest"}, 8, []float64{10, 10, 20, 20, 30, 30, 40, 40}},
		{attrs{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"}, 8,
			[]float64{10, 20, 20, 30, 30, 40, 40, 40}},
		{attrs{"mode": "nearest"}, 2, []float64{10, 30}},
		{attrs{"mode": "nearest", "nearest_mode": "round_prefer_ceil"}, 2, []float64{20, 40}},
	} {
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16} {
			got := must(t, "Resize", 19, c.a, as(dt, x), nil, nil, ir.ArrayOf([]int64{c.sizes}, 1))
			near(t, fmt.Sprint(c.a), got, c.want, 1e-6)
		}
	}
}

// Elements of weight 0 do not contribute, along rows and across them: 0·Inf is NaN.
func TestResizeBesideInfinity(t *testing.T) {
	inf := float32(math.Inf(1))
	a := attrs{"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
	want := []float64{1, math.Inf(1), math.Inf(1), math.Inf(1), 2, 2.5, 3, 3}
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16} {
		row := as(dt, ir.ArrayOf([]float32{1, inf, 2, 3}, 4))
		column := as(dt, ir.ArrayOf([]float32{1, 1, inf, inf, 2, 2, 3, 3}, 4, 2))
		along := wideOf(must(t, "Resize", 19, a, row, nil, nil, ir.ArrayOf([]int64{8}, 1)))
		across := wideOf(must(t, "Resize", 19, a, column, nil, nil, ir.ArrayOf([]int64{8, 2}, 2)))
		for i, v := range want {
			if along[i] != v || across[2*i] != v || across[2*i+1] != v {
				t.Errorf("%s, element %d: %v along, %v and %v across, want %v", dt, i, along[i], across[2*i],
					across[2*i+1], v)
			}
		}
	}
}

func TestResizeBeforeVersion11(t *testing.T) {
	x := ir.ArrayOf([]float32{1, 2, 3, 4, 5}, 5)
	grow, shrink := ir.ArrayOf([]float32{1.5}, 1), ir.ArrayOf([]float32{0.6}, 1)
	for _, c := range []struct {
		name    string
		version int64
		a       attrs
		in      []*ir.Array
		want    []float64
	}{
		{"Upsample", 7, attrs{"scales": []float32{1.5}}, []*ir.Array{x}, []float64{1, 1, 2, 3, 3, 4, 5}},
		{"Upsample", 9, attrs{}, []*ir.Array{x, grow}, []float64{1, 1, 2, 3, 3, 4, 5}},
		{"Upsample", 9, attrs{"mode": "linear"}, []*ir.Array{x, grow},
			[]float64{1, 5. / 3, 7. / 3, 3, 11. / 3, 13. / 3, 5}},
		{"Resize", 10, attrs{}, []*ir.Array{x, grow}, []float64{1, 1, 2, 3, 3, 4, 5}},
		{"Resize", 10, attrs{}, []*ir.Array{x, shrink}, []float64{1, 3, 5}},
	} {
		near(t, fmt.Sprint(c.name, c.version, c.a), must(t, c.name, c.version, c.a, c.in...), c.want, 1e-6)
	}
}

func TestResizeOfOtherTypes(t *testing.T) {
	sizes := ir.ArrayOf([]int64{2, 4}, 2)
	words, err := run(rowOf("Resize", 19), 19, nil, 2, 1,
		[]*ir.Array{ir.TextOf([]string{"a", "b"}, 1, 2), nil, nil, sizes})
	if err != nil || strings.Join(words[0].Text, "") != "aabbaabb" {
		t.Errorf("got %v, %v", words, err)
	}
	codes := ir.ArrayOf([]uint8{0, 255, 255, 0}, 1, 4)
	got := must(t, "Resize", 19, attrs{"mode": "cubic"}, codes, nil, nil, ir.ArrayOf([]int64{1, 8}, 2)).Data
	// The cubic kernel overshoots in the middle and undershoots at the ends: both are saturated.
	if got[3] != 255 || got[4] != 255 || got[0] != 0 || !slices.IsSorted(got[:4]) {
		t.Errorf("got %v", got)
	}
}

func TestResizeKeepsTheAspectRatio(t *testing.T) {
	for policy, want := range map[string][]int64{"not_larger": {1, 6, 3}, "not_smaller": {1, 12, 6},
		"stretch": {1, 6, 6}} {
		a := attrs{"axes": []int{1, -1}, "keep_aspect_ratio_policy": policy}
		if got := must(t, "Resize", 18, a, random(1, 1, 8, 4), nil, nil,
			ir.ArrayOf([]int64{6, 6}, 2)); !slices.Equal(got.Shape, want) {
			t.Errorf("%s: got %v, want %v", policy, got.Shape, want)
		}
	}
}

func TestResizeOfARegion(t *testing.T) {
	x := ir.ArrayOf([]float32{0, 10, 20, 30, 40}, 5)
	a := attrs{"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -1.0}
	roi := ir.ArrayOf([]float32{0.25, 1.25}, 2)
	got := must(t, "Resize", 13, a, x, roi, nil, ir.ArrayOf([]int64{5}, 1))
	near(t, "region", got, []float64{10, 20, 30, 40, -1}, 1e-6)
}

// Sampling at the identity grid gives X itself, for each convention of coordinates.
func TestIdentityGrid(t *testing.T) {
	for _, corners := range []int{0, 1} {
		for _, shape := range [][]int64{{2, 3, 4, 5}, {1, 2, 3, 4, 5}} {
			theta := identity(shape[0], len(shape)-2)
			a := attrs{"align_corners": corners}
			grid := must(t, "AffineGrid", 20, a, theta, ir.ArrayOf(slices.Clone(shape), int64(len(shape))))
			for _, mode := range []string{"linear", "nearest", "cubic"} {
				a["mode"] = mode
				x := random(1, shape...)
				near(t, fmt.Sprint(shape, a), must(t, "GridSample", 20, a, x, grid), wideOf(x), 1e-5)
			}
		}
	}
}

func identity(n int64, axes int) *ir.Array {
	a := ir.NewArray(ir.Float, n, int64(axes), int64(axes+1))
	for i := range int(n) * axes {
		ir.View[float32](a)[i*(axes+1)+i%axes] = 1
	}
	return a
}

func TestGridSamplePadding(t *testing.T) {
	x := ir.ArrayOf([]float32{1, 2, 3, 4}, 1, 1, 1, 4)
	// Coordinates -1.5 and 2 are positions -1 and 4.5 of the last axis if -1 and 1 are the edges.
	grid := ir.ArrayOf([]float32{-1.5, 0, 2, 0, 0, 0}, 1, 1, 3, 2)
	for padding, want := range map[string][]float64{"zeros": {0.25, 0, 2.5}, "border": {1, 4, 2.5},
		"reflection": {1.75, 2.5, 2.5}} {
		a := attrs{"padding_mode": padding, "align_corners": 1}
		near(t, padding, must(t, "GridSample", 16, a, x, grid), want, 1e-6)
	}
	whole := ir.ArrayOf([]int32{1, 2, 3, 4}, 1, 1, 1, 4)
	if got := ir.View[int32](must(t, "GridSample", 16, attrs{"align_corners": 1}, whole, grid)); got[2] != 2 {
		t.Errorf("int32: got %v, want 2.5 truncated last", got)
	}
}

func TestRoiAlign(t *testing.T) {
	x := ir.NewArray(ir.Float, 2, 1, 8, 8) // image 1 increases by 1 per column
	for i := range 64 {
		ir.View[float32](x)[64+i] = float32(i % 8)
	}
	rois := ir.ArrayOf([]float32{2, 2, 6, 6}, 1, 4)
	a := attrs{"output_height": 1, "output_width": 2, "sampling_ratio": 2}
	// Parts of 2 columns from 2 on: their samples are at 2.5, 3.5, 4.5 and 5.5, or half an element before.
	for version, want := range map[int64][]float64{10: {3, 5}, 16: {2.5, 4.5}} {
		near(t, fmt.Sprint(version), must(t, "RoiAlign", version, a, x, rois, ir.ArrayOf([]int64{1}, 1)), want, 1e-6)
	}
	if _, err := run(rowOf("RoiAlign", 16), 16, a, 1, 1, []*ir.Array{x, rois, ir.ArrayOf([]int64{2}, 1)}); err == nil {
		t.Error("an image index out of range is accepted")
	}
}

func TestMaxRoiPool(t *testing.T) {
	x := ir.NewArray(ir.Float, 1, 1, 4, 4)
	for i := range 16 {
		ir.View[float32](x)[i] = float32(i)
	}
	// From (1,1) to (3,3), both included: rows 1–2 and 2–3 for the parts, and columns likewise.
	got := must(t, "MaxRoiPool", 1, attrs{"pooled_shape": []int{2, 2}}, x, ir.ArrayOf([]float32{0, 1, 1, 3, 3}, 1, 5))
	near(t, "MaxRoiPool", got, []float64{10, 11, 14, 15}, 0)
}
