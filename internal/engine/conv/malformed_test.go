package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// samples are valid nodes.
func samples() []optest.Case {
	var list []optest.Case
	sample := func(name string, version int64, a attrs, in ...*ir.Array) optest.Case {
		return optest.Case{Type: name, Version: version, In: in, Attrs: a.List(), Workers: 2}
	}
	for _, l := range layers() {
		x, w, b := random(1, l.x...), random(2, l.w...), random(3, l.w[0])
		list = append(list, sample("Conv", 22, l.a, x, w, b), sample("FusedConv", 1, l.a, x, w, b, nil))
		codes, zero, scale := ir.NewArray(ir.Uint8, l.x...), ir.NewArray(ir.Uint8, 1), random(4, 1)
		list = append(list, sample("QuantizedConv", 1, l.a, codes, w, b, scale, zero, scale, zero))
		list = append(list, sample("ConvTranspose", 22, attrs{"group": l.a["group"]}, w, w))
	}
	for _, l := range pools() {
		for _, name := range []string{"MaxPool", "AveragePool", "LpPool", "GlobalLpPool"} {
			list = append(list, sample(name, 22, l.a, random(1, l.x...)))
		}
	}
	square := random(1, 1, 2, 4, 4)
	sizes := ir.ArrayOf([]int64{1, 2, 3, 5}, 4)
	return append(list,
		sample("Resize", 19, attrs{"mode": "linear"}, square, nil, nil, sizes),
		sample("Resize", 19, attrs{"mode": "nearest"}, square, nil, random(2, 4)),
		sample("Resize", 10, attrs{"mode": "linear"}, square, random(2, 4)),
		sample("Resize", 13, attrs{"coordinate_transformation_mode": "tf_crop_and_resize"}, square, random(2, 8), nil,
			sizes),
		sample("Upsample", 7, attrs{"scales": []float32{1, 1, 2, 2}}, square),
		sample("GridSample", 20, attrs{"mode": "cubic"}, square, random(1, 1, 3, 3, 2)),
		sample("AffineGrid", 20, attrs{}, random(1, 1, 2, 3), sizes),
		sample("RoiAlign", 16, attrs{"output_height": 2}, square, random(2, 3, 4), ir.ArrayOf([]int64{0, 0, 0}, 3)),
		sample("MaxRoiPool", 1, attrs{"pooled_shape": []int{2, 2}}, square, random(2, 3, 5)),
		sample("MaxUnpool", 11, attrs{"kernel_shape": []int{2, 2}}, square, ir.NewArray(ir.Int64, 1, 2, 4, 4), nil),
		sample("DeformConv", 19, attrs{}, square, random(1, 3, 2, 2, 2), random(2, 1, 8, 3, 3), nil,
			random(3, 1, 4, 3, 3)),
	)
}

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	for i, s := range samples() {
		for seed := range seeds {
			broken := s.Malformed(rand.New(rand.NewPCG(seed, uint64(i))), defects)
			if text := optest.Panic(rowOf(s.Type, s.Version), broken); text != "" {
				t.Fatalf("%v: %s", broken, text)
			}
		}
	}
}

var defects = optest.Defects{
	Ints: []string{"group", "offset_group", "p", "ceil_mode", "sampling_ratio", "output_height", "storage_order",
		"antialias", "exclude_outside"},
	Lists: []string{"pads", "strides", "dilations", "kernel_shape", "axes", "output_padding", "output_shape",
		"pooled_shape"},
	Texts: []string{"mode", "auto_pad", "nearest_mode", "coordinate_transformation_mode", "padding_mode",
		"activation"},
	Values: []string{"", "cubic", "SAME_UPPER", "tf_crop_and_resize", "unknown"},
}
