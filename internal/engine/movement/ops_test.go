package movement

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestViews(t *testing.T) {
	x := count(2, 3, 4)
	check(t, []example{
		{"Reshape", 5, nil, in(x, vec(0, -1)), count(2, 12)},
		{"Reshape", 5, nil, in(x, vec(-1, 0)), count(8, 3)},
		{"Reshape", 14, attrs(num("allowzero", 1)), in(count(0, 3), vec(3, 0)), count(3, 0)},
		{"Reshape", 14, nil, in(count(0, 3), vec(0, 0)), count(0, 3)},
		{"Reshape", 5, nil, in(count(1), vec()), count()},
		{"Reshape", 5, nil, in(x, vec(-1, -1)), nil},
		{"Reshape", 5, nil, in(x, vec(5, -1)), nil},
		{"Reshape", 5, nil, in(x, vec(2, 3, 4, 0)), nil},
		{"Reshape", 5, nil, in(x, vec(1<<40, 1<<40)), nil},
		{"Flatten", 1, nil, in(x), count(2, 12)},
		{"Flatten", 13, attrs(num("axis", -1)), in(x), count(6, 4)},
		{"Flatten", 13, attrs(num("axis", 0)), in(count()), count(1, 1)},
		{"Flatten", 13, attrs(num("axis", 4)), in(x), nil},
		{"Squeeze", 1, attrs(nums("axes", 0)), in(count(1, 2, 1)), count(2, 1)},
		{"Squeeze", 13, nil, in(count(1, 2, 1), vec(-1)), count(1, 2)},
		{"Squeeze", 13, nil, in(count(1, 2, 1)), count(2)},
		{"Squeeze", 13, nil, in(count(1, 2, 1), vec(1)), nil},
		{"Unsqueeze", 1, attrs(nums("axes", 0, 2)), in(count(2)), count(1, 2, 1)},
		{"Unsqueeze", 13, nil, in(count(2), vec(-1)), count(2, 1)},
		{"Unsqueeze", 13, nil, in(count(2), vec(0, 0)), nil},
		{"Unsqueeze", 13, nil, in(count(2)), nil},
		{"Identity", 1, nil, in(text("a", "b")), text("a", "b")},
	})
}

func TestShapes(t *testing.T) {
	x := count(2, 3, 4)
	check(t, []example{
		{"Shape", 1, nil, in(x), vec(2, 3, 4)},
		{"Shape", 15, attrs(num("start", -1)), in(x), vec(4)},
		{"Shape", 15, attrs(num("start", -9), num("end", 9)), in(x), vec(2, 3, 4)},
		{"Shape", 15, attrs(num("start", 2), num("end", 1)), in(x), vec()},
		{"Shape", 1, nil, in(count()), vec()},
		{"Size", 1, nil, in(x), scalarOf(24)},
		{"Size", 1, nil, in(count(3, 0)), scalarOf(0)},
	})
}

func TestConcat(t *testing.T) {
	check(t, []example{
		{"Concat", 4, attrs(num("axis", 1)), in(count(2, 1), count(2, 2)), dims(2, 3)(0, 0, 1, 1, 2, 3)},
		{"Concat", 13, attrs(num("axis", -2)), in(count(1, 2), count(0, 2), count(1, 2)), dims(2, 2)(0, 1, 0, 1)},
		{"Concat", 13, attrs(num("axis", 0)), in(text("a"), text("b", "c")), text("a", "b", "c")},
		{"Concat", 13, attrs(num("axis", 0)), in(as(ir.Int4, vec(1, 2, 3)), as(ir.Int4, vec(4, 5))),
			as(ir.Int4, vec(1, 2, 3, 4, 5))},
		{"Concat", 13, attrs(num("axis", 0)), in(count(1, 2), count(1, 3)), nil},
		{"Concat", 13, attrs(num("axis", 0)), in(count(1), text("a")), nil},
		{"Concat", 13, nil, in(count(1)), nil},
	})
}

func TestSplits(t *testing.T) {
	for _, c := range []struct {
		version int64
		outputs int
		attrs   []*ir.Attr
		in      []*ir.Array
		want    []int64
	}{
		{2, 2, nil, in(count(4)), []int64{2, 2}},
		{11, 2, attrs(nums("split", 1, 3)), in(count(4)), []int64{1, 3}},
		{13, 3, nil, in(count(4), vec(1, 0, 3)), []int64{1, 0, 3}},
		{18, 3, attrs(num("num_outputs", 3)), in(count(7)), []int64{3, 3, 1}},
		{18, 4, attrs(num("num_outputs", 4)), in(count(5)), []int64{2, 2, 1, 0}},
		{13, 3, nil, in(count(4)), nil},
		{13, 2, nil, in(count(4), vec(1, 2)), nil},
		{13, 2, nil, in(count(4), vec(1, 1, 2)), nil},
	} {
		got, err := run("Split", c.version, c.outputs, c.attrs, c.in...)
		if (err != nil) != (c.want == nil) {
			t.Errorf("opset %d, %v: %v", c.version, c.in, err)
		}
		next := int64(0)
		for i, n := range c.want {
			want := vec()
			for range n {
				want = vec(append(ir.View[int64](want), next)...)
				next++
			}
			if err := same(got[i], want); err != nil {
				t.Errorf("opset %d, %v: output %d: %v", c.version, c.in, i, err)
			}
		}
	}
}

func TestSlices(t *testing.T) {
	x := count(2, 4)
	check(t, []example{
		{"Slice", 1, attrs(nums("starts", 1), nums("ends", 3), nums("axes", 1)), in(x), dims(2, 2)(1, 2, 5, 6)},
		{"Slice", 10, nil, in(x, vec(0, 1), vec(-1, 1000)), dims(1, 3)(1, 2, 3)},
		{"Slice", 13, nil, in(x, vec(-1), vec(math.MinInt64), vec(-1), vec(-2)), dims(2, 2)(3, 1, 7, 5)},
		{"Slice", 13, nil, in(x, vec(-10), vec(math.MinInt64), vec(1), vec(-1)), dims(2, 1)(0, 4)},
		{"Slice", 13, nil, in(x, vec(3), vec(1), vec(1)), count(2, 0)},
		{"Slice", 13, nil, in(x, vec(0), vec(math.MaxInt64), vec(0), vec(math.MaxInt64)), dims(1, 4)(0, 1, 2, 3)},
		{"Slice", 13, nil, in(text("a", "b", "c"), vec(2), vec(-9), vec(0), vec(-1)), text("c", "b", "a")},
		{"Slice", 13, nil, in(x, vec(0), vec(1), vec(0), vec(0)), nil},
		{"Slice", 13, nil, in(x, vec(0), vec(1), vec(2)), nil},
		{"Slice", 13, nil, in(x, vec(0), vec(1, 2)), nil},
		{"Slice", 13, nil, in(x, vec(0)), nil},
	})
}

func TestExpandAndTile(t *testing.T) {
	check(t, []example{
		{"Expand", 8, nil, in(dims(2, 1)(7, 8), vec(3)), dims(2, 3)(7, 7, 7, 8, 8, 8)},
		{"Expand", 8, nil, in(vec(7, 8), vec(2, 1)), dims(2, 2)(7, 8, 7, 8)},
		{"Expand", 8, nil, in(dims(1)(7), vec(0)), vec()},
		{"Expand", 8, nil, in(text("a"), vec(2)), text("a", "a")},
		{"Expand", 8, nil, in(vec(7, 8), vec(3)), nil},
		{"Tile", 6, nil, in(dims(2, 1)(1, 2), vec(2, 3)), dims(4, 3)(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2)},
		{"Tile", 6, nil, in(vec(1, 2), vec(0)), vec()},
		{"Tile", 6, nil, in(vec(1, 2), vec(2, 2)), nil},
		{"Tile", 6, nil, in(vec(1, 2), vec(1<<62)), nil},
	})
}

// The specification's examples, and modes with borders wider than the axis, as in NumPy.
func TestPads(t *testing.T) {
	x := dims(1, 3)(1, 2, 3)
	mode := func(m string) []*ir.Attr { return attrs(word("mode", m)) }
	check(t, []example{
		{"Pad", 2, attrs(nums("pads", 0, 1, 1, 0)), in(as(ir.Int64, x)), dims(2, 4)(0, 1, 2, 3, 0, 0, 0, 0)},
		{"Pad", 11, nil, in(x, vec(0, 1, 0, 1), scalarOf(9)), dims(1, 5)(9, 1, 2, 3, 9)},
		{"Pad", 11, nil, in(x, vec(1, -1, 0, 1), scalarOf(9)), dims(2, 3)(9, 9, 9, 2, 3, 9)},
		{"Pad", 11, mode("reflect"), in(x, vec(0, 5, 0, 2)), dims(1, 10)(2, 1, 2, 3, 2, 1, 2, 3, 2, 1)},
		{"Pad", 11, mode("edge"), in(x, vec(1, 2, 0, 1)), dims(2, 6)(1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3)},
		{"Pad", 19, mode("wrap"), in(x, vec(0, 4, 0, 1)), dims(1, 8)(3, 1, 2, 3, 1, 2, 3, 1)},
		{"Pad", 19, mode("reflect"), in(x, vec(0, -1, 0, 1)), dims(1, 3)(2, 3, 2)},
		{"Pad", 18, nil, in(x, vec(1, 1), nil, vec(-1)), dims(1, 5)(0, 1, 2, 3, 0)},
		{"Pad", 18, nil, in(text("a"), vec(1, 0), ir.TextOf([]string{"z"})), text("z", "a")},
		{"Pad", 11, nil, in(text("a"), vec(0, 1)), text("a", "")},
		{"Pad", 11, mode("reflect"), in(count(0), vec(1, 0)), nil},
		{"Pad", 11, mode("mirror"), in(x, vec(0, 0, 0, 0)), nil},
		{"Pad", 11, nil, in(x, vec(0, 1)), nil},
		{"Pad", 11, nil, in(x, vec(0, -4, 0, 9)), nil},
		{"Pad", 11, nil, in(x, vec(0, math.MaxInt64, 0, math.MaxInt64)), nil},
		{"Pad", 11, nil, in(x, vec(0, 0, 0, 0), text("a")), nil},
		{"CenterCropPad", 18, nil, in(dims(1, 4)(1, 2, 3, 4), vec(2, 1)), dims(2, 1)(2, 0)},
		{"CenterCropPad", 18, attrs(nums("axes", -1)), in(dims(1, 1)(1), vec(4)), dims(1, 4)(0, 1, 0, 0)},
		{"CenterCropPad", 18, nil, in(x, vec(1)), nil},
	})
}

func TestDepthToSpace(t *testing.T) {
	// Channel c·4 + pixel maps to pixel of channel c in CRD; pixel·2 + c in DCR.
	check(t, []example{
		{"DepthToSpace", 11, attrs(num("blocksize", 2), word("mode", "CRD")), in(count(1, 8, 1, 1)), count(1, 2, 2, 2)},
		{"DepthToSpace", 1, attrs(num("blocksize", 2)), in(count(1, 8, 1, 1)),
			dims(1, 2, 2, 2)(0, 2, 4, 6, 1, 3, 5, 7)},
		{"SpaceToDepth", 28, attrs(num("blocksize", 2), word("mode", "CRD")), in(count(1, 2, 2, 2)), count(1, 8, 1, 1)},
		{"SpaceToDepth", 1, attrs(num("blocksize", 2)), in(dims(1, 2, 2, 2)(0, 2, 4, 6, 1, 3, 5, 7)),
			count(1, 8, 1, 1)},
		{"DepthToSpace", 11, attrs(num("blocksize", 2)), in(count(1, 6, 1, 1)), nil},
		{"SpaceToDepth", 11, attrs(num("blocksize", 2)), in(count(1, 1, 3, 2)), nil},
		{"DepthToSpace", 11, nil, in(count(1, 8, 1, 1)), nil},
	})
}
