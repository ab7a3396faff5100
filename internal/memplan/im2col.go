package memplan

import (
	"strings"

	"github.com/mcompress/mcompress/internal/memory/layout"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// window describes the im2col copies of convolution n; nil for other nodes, unknown shapes,
// and depthwise convolutions, which need none.
func (b *imageGraph) window(n *ir.Node) *layout.Window {
	filters := operator.Of(n).With(operator.Filter)
	if len(filters) == 0 || n.Op.Is("DeformConv") {
		return nil
	}
	x, w, y := b.shape(n.Input(0)), b.shape(n.Input(filters[0])), b.shape(n.Outputs[0])
	if len(x) < 3 || len(w) != len(x) || len(y) != len(x) {
		return nil
	}
	// transposed: its copies are of the output
	if axes, _ := operator.Of(n).Input(filters[0]).Axes(n, len(w)); axes.Shared > 0 {
		return nil
	}
	// Depthwise convolutions.
	if n.Int("group", 1) == x[1] && x[1] > 1 {
		return nil
	}
	axes := len(x) - 2
	return &layout.Window{
		Batch: x[0], Channels: x[1], Group: n.Int("group", 1), KernelShape: w[2:], Size: y[2:],
		Strides: ints(n, "strides", axes, 1), Dilations: ints(n, "dilations", axes, 1), Pads: pads(n, axes),
		ElemBytes: max(1, b.types[n.Input(0).Name].DType.Bits()/8),
	}
}

func (b *imageGraph) shape(v *ir.Value) []int64 {
	switch {
	case v == nil:
		return nil
	case v.Const != nil:
		return v.Const.Shape
	}
	return b.types[v.Name].Shape
}

// ints is an attribute with one number for each axis.
func ints(n *ir.Node, name string, axes int, def int64) []int64 {
	if a := n.Attr(name); a != nil && len(a.Ints) == axes {
		return a.Ints
	}
	list := make([]int64, axes)
	for i := range list {
		list[i] = def
	}
	return list
}

// pads are 0 with auto_pad: they matter for 1×1 kernels only, which auto_pad does not pad.
func pads(n *ir.Node, axes int) []int64 {
	if a := n.Attr("auto_pad"); a != nil && a.S != "" && !strings.EqualFold(a.S, "NOTSET") {
		return make([]int64, 2*axes)
	}
	return ints(n, "pads", 2*axes, 0)
}
