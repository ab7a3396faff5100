package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestReductions(t *testing.T) {
	var probes []probe
	axes := ir.IntsAttr("axes", -1, 0)
	keep, drop := ir.IntAttr("keepdims", 1), ir.IntAttr("keepdims", 0)
	for _, typ := range []string{
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
		"ReduceLogSum", "ReduceLogSumExp", "ReduceProd",
	} {
		x := separated(1, 2, 3, 2)
		if typ == "ReduceLogSum" {
			x = positive(1, 2, 3, 2)
		}
		probes = append(probes,
			probe{op: onnx(typ), in: []*ir.Array{x}},
			probe{op: onnx(typ), in: []*ir.Array{x}, attrs: []*ir.Attr{drop}},
			probe{op: onnx(typ), in: []*ir.Array{x, list(1)}, attrs: []*ir.Attr{keep}},
			probe{op: onnx(typ), in: []*ir.Array{x, list(-1, 0)}, attrs: []*ir.Attr{drop}},
			probe{op: onnx(typ), in: []*ir.Array{x}, attrs: []*ir.Attr{ir.IntAttr("noop_with_empty_axes", 1)},
				tell: "noop"},
			probe{op: onnx(typ), opset: 11, in: []*ir.Array{x}, attrs: []*ir.Attr{axes, drop}, tell: "attribute"},
			probe{op: onnx(typ), opset: 11, in: []*ir.Array{x}, attrs: []*ir.Attr{axes}, tell: "attribute"},
		)
	}
	withZeros := ir.ArrayOf([]float64{0, 2, 3, 0, 0, 5}, 2, 3)
	checkAll(t, append(probes, probe{op: onnx("ReduceProd"), in: []*ir.Array{withZeros, list(1)}, tell: "zeros"}))
}

func TestNormalizations(t *testing.T) {
	x := values(1, 2, 3, 4)
	epsilon := ir.FloatAttr("epsilon", 1e-3)
	ms := func(typ string) ir.OpID { return ir.OpID{Domain: microsoft, Type: typ} }
	var probes []probe
	for _, typ := range []string{"Softmax", "LogSoftmax"} {
		probes = append(probes,
			probe{op: onnx(typ), in: []*ir.Array{x}},
			probe{op: onnx(typ), in: []*ir.Array{x}, attrs: []*ir.Attr{axis(1)}},
			probe{op: onnx(typ), opset: 12, in: []*ir.Array{x}, tell: "flat"},
			probe{op: onnx(typ), opset: 12, in: []*ir.Array{x}, tell: "flat", attrs: []*ir.Attr{axis(-1)}},
		)
	}
	checkAll(t, append(probes, []probe{
		{op: onnx("LayerNormalization"), in: []*ir.Array{x, values(2, 4), values(3, 4)}},
		{op: onnx("LayerNormalization"), in: []*ir.Array{x, values(2, 4)}, attrs: []*ir.Attr{epsilon}},
		{op: onnx("LayerNormalization"), in: []*ir.Array{x, values(2, 3, 4), values(3, 3, 4)},
			attrs: []*ir.Attr{axis(1)}},
		{op: onnx("LayerNormalization"), in: []*ir.Array{x, values(2, 4), values(3, 3, 1)},
			attrs: []*ir.Attr{axis(-2)}, tell: "broadcast"},
		{op: onnx("LayerNormalization"), in: []*ir.Array{x, values(2, 2, 3, 4), values(3, 2, 3, 4)},
			attrs: []*ir.Attr{axis(0)}},
		{op: onnx("RMSNormalization"), in: []*ir.Array{x, values(2, 4)}},
		{op: onnx("RMSNormalization"), in: []*ir.Array{x, values(2, 1)}, tell: "broadcast"},
		{op: onnx("SimplifiedLayerNormalization"), opset: 17, in: []*ir.Array{x, values(2, 4)}},
		{op: ms("SkipLayerNormalization"), in: []*ir.Array{x, values(4, 2, 3, 4), values(2, 4), values(3, 4),
			values(5, 4)}},
		{op: ms("SkipSimplifiedLayerNormalization"), in: []*ir.Array{x, values(4, 2, 3, 4), values(2, 4)}},
		{op: onnx("GroupNormalization"), in: []*ir.Array{values(1, 2, 4, 3), values(2, 4), values(3, 4)},
			attrs: []*ir.Attr{ir.IntAttr("num_groups", 2)}},
		{op: onnx("GroupNormalization"), opset: 18,
			in:    []*ir.Array{values(1, 2, 4, 2, 2), values(2, 2), values(3, 2)},
			attrs: []*ir.Attr{ir.IntAttr("num_groups", 2)}},
		{op: onnx("LpNormalization"), in: []*ir.Array{separated(1, 3, 4)}},
		{op: onnx("LpNormalization"), in: []*ir.Array{separated(1, 3, 4)},
			attrs: []*ir.Attr{axis(0), ir.IntAttr("p", 1)}},
	}...))
}
