package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func list(is ...int64) *ir.Array { return ir.ArrayOf(is, int64(len(is))) }

func axis(i int64) *ir.Attr { return ir.IntAttr("axis", i) }

func TestMovement(t *testing.T) {
	x := values(1, 2, 3, 4)
	checkAll(t, []probe{
		{op: onnx("Reshape"), in: []*ir.Array{x, list(4, -1)}},
		{op: onnx("Flatten"), in: []*ir.Array{x}},
		{op: onnx("Squeeze"), in: []*ir.Array{values(1, 2, 1, 3, 1), list(1)}},
		{op: onnx("Squeeze"), opset: 11, in: []*ir.Array{values(1, 2, 1, 3, 1)}},
		{op: onnx("Unsqueeze"), in: []*ir.Array{x, list(0, -1)}},
		{op: onnx("Unsqueeze"), opset: 11, in: []*ir.Array{x}, attrs: []*ir.Attr{ir.IntsAttr("axes", 1)}},
		{op: onnx("Transpose"), in: []*ir.Array{x}},
		{op: onnx("Transpose"), in: []*ir.Array{x}, attrs: []*ir.Attr{ir.IntsAttr("perm", 1, 2, 0)}},
		{op: onnx("Concat"), in: []*ir.Array{x, values(2, 2, 1, 4), values(3, 2, 2, 4)}, attrs: []*ir.Attr{axis(-2)}},
		{op: onnx("Split"), outputs: 2, in: []*ir.Array{x, list(1, 3)}, attrs: []*ir.Attr{axis(2)}},
		{op: onnx("Split"), opset: 11, outputs: 2, in: []*ir.Array{x},
			attrs: []*ir.Attr{axis(-1), ir.IntsAttr("split", 3, 1)}},
		{op: onnx("Expand"), in: []*ir.Array{values(1, 3, 1), list(2, 1, 4)}},
		{op: onnx("Tile"), in: []*ir.Array{values(1, 2, 3), list(2, 3)}},
		{op: onnx("Resize"), in: []*ir.Array{values(1, 1, 2, 2, 3), nil, ir.ArrayOf([]float32{1, 1, 2, 3}, 4)}},
		{op: onnx("Resize"), in: []*ir.Array{values(1, 1, 2, 2, 3), nil, nil, list(1, 2, 6, 6)}, attrs: []*ir.Attr{
			ir.StringAttr("coordinate_transformation_mode", "asymmetric"), ir.StringAttr("nearest_mode", "floor"),
		}},
		{op: onnx("Upsample"), opset: 9, in: []*ir.Array{values(1, 1, 2, 2, 3), ir.ArrayOf([]float32{1, 1, 3, 2}, 4)}},
		{op: onnx("DepthToSpace"), in: []*ir.Array{values(1, 2, 8, 1, 2)},
			attrs: []*ir.Attr{ir.IntAttr("blocksize", 2)}},
		{op: onnx("DepthToSpace"), in: []*ir.Array{values(1, 1, 8, 2, 1)},
			attrs: []*ir.Attr{ir.IntAttr("blocksize", 2), ir.StringAttr("mode", "CRD")}},
		{op: onnx("SpaceToDepth"), in: []*ir.Array{values(1, 1, 2, 4, 2)},
			attrs: []*ir.Attr{ir.IntAttr("blocksize", 2)}},
		{op: onnx("Trilu"), in: []*ir.Array{values(1, 3, 4), integers(nil, 1)}},
		{op: onnx("Trilu"), in: []*ir.Array{values(1, 2, 3, 3)}, attrs: []*ir.Attr{ir.IntAttr("upper", 0)}},
		{op: onnx("CumSum"), in: []*ir.Array{values(1, 3, 4), integers(nil, 1)}},
		{op: onnx("CumSum"), in: []*ir.Array{values(1, 3, 4), integers(nil, 0)},
			attrs: []*ir.Attr{ir.IntAttr("exclusive", 1), ir.IntAttr("reverse", 1)}},
	})
}

func TestIndexed(t *testing.T) {
	x, pads := values(1, 4, 5), []int64{1, 2, 2, 0}
	mode := func(m string) []*ir.Attr { return []*ir.Attr{ir.StringAttr("mode", m)} }
	add := ir.StringAttr("reduction", "add")
	checkAll(t, []probe{
		{op: onnx("Slice"), in: []*ir.Array{x, list(1), list(3)}},
		{op: onnx("Slice"), in: []*ir.Array{x, list(-3, 9), list(-1, -99), list(-1, 0), list(2, -2)}},
		{op: onnx("Slice"), in: []*ir.Array{x, list(4), list(0), list(1), list(-1)}},
		{op: onnx("Slice"), opset: 9, in: []*ir.Array{x},
			attrs: []*ir.Attr{ir.IntsAttr("starts", 0, 1), ir.IntsAttr("ends", 3, 9), ir.IntsAttr("axes", 0, 1)}},
		{op: onnx("Pad"), in: []*ir.Array{x, list(pads...)}},
		{op: onnx("Pad"), in: []*ir.Array{x, list(-1, 1, 2, -2)}, tell: "negative"},
		{op: onnx("Pad"), in: []*ir.Array{x, list(-1, 2), nil, list(-1)}, tell: "axes"},
		{op: onnx("Pad"), in: []*ir.Array{x, list(pads...)}, attrs: mode("reflect")},
		{op: onnx("Pad"), in: []*ir.Array{x, list(pads...)}, attrs: mode("edge")},
		{op: onnx("Pad"), in: []*ir.Array{x, list(pads...)}, attrs: mode("wrap")},
		{op: onnx("Pad"), opset: 10, in: []*ir.Array{x}, attrs: append(mode("reflect"), ir.IntsAttr("pads", pads...))},
		{op: onnx("Gather"), in: []*ir.Array{x, integers([]int64{2, 3}, 0, -1, 2, 2, 0, 2)}},
		{op: onnx("Gather"), in: []*ir.Array{values(1, 2, 3, 2), integers([]int64{4}, 1, 1, 0, -3)},
			attrs: []*ir.Attr{axis(1)}},
		{op: onnx("Gather"), in: []*ir.Array{x, integers(nil, 3)}, attrs: []*ir.Attr{axis(-1)}},
		{op: onnx("GatherElements"), in: []*ir.Array{x, integers([]int64{2, 3}, 0, 1, 2, 0, -4, 2)}},
		{op: onnx("GatherND"), in: []*ir.Array{x, integers([]int64{3, 2}, 0, 1, 3, 4, 0, 1)}},
		{op: onnx("GatherND"), in: []*ir.Array{x, integers([]int64{2, 1}, 2, 2)}},
		{op: onnx("TopK"), outputs: 2, in: []*ir.Array{separated(1, 3, 5), list(2)}},
		{op: onnx("TopK"), in: []*ir.Array{separated(1, 3, 5), list(2)}, attrs: []*ir.Attr{axis(0)}},
		{op: onnx("Scatter"), opset: 9, in: []*ir.Array{x, integers([]int64{1, 2}, 1, 3), values(2, 1, 2)}},
		{op: onnx("ScatterElements"), in: []*ir.Array{x, integers([]int64{2, 2}, 1, 3, 0, 2), values(2, 2, 2)}},
		{op: onnx("ScatterElements"), in: []*ir.Array{x, integers([]int64{2, 2}, 1, 3, 1, 3), values(2, 2, 2)},
			attrs: []*ir.Attr{add, axis(1)}},
		{op: onnx("ScatterND"), in: []*ir.Array{x, integers([]int64{2, 2}, 1, 3, 0, 2), values(2, 2)}},
		{op: onnx("ScatterND"), in: []*ir.Array{x, integers([]int64{2, 1}, 1, 1), values(2, 2, 5)},
			attrs: []*ir.Attr{add}},
	})
}
