package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestConvolutions(t *testing.T) {
	pads := func(is ...int64) *ir.Attr { return ir.IntsAttr("pads", is...) }
	strides := func(is ...int64) *ir.Attr { return ir.IntsAttr("strides", is...) }
	dilations := func(is ...int64) *ir.Attr { return ir.IntsAttr("dilations", is...) }
	group := func(n int64) *ir.Attr { return ir.IntAttr("group", n) }
	auto := func(s string) *ir.Attr { return ir.StringAttr("auto_pad", s) }
	var probes []probe
	for _, c := range []struct {
		x, w  []int64
		attrs []*ir.Attr
	}{
		{[]int64{2, 2, 7}, []int64{3, 2, 3}, []*ir.Attr{strides(2), pads(1, 2)}},
		{[]int64{2, 3, 5, 4}, []int64{4, 3, 3, 3}, []*ir.Attr{pads(1, 1, 1, 1)}},
		{[]int64{2, 4, 5, 4}, []int64{4, 2, 3, 2}, []*ir.Attr{group(2), strides(2, 1), pads(0, 1, 1, 0)}},
		{[]int64{1, 2, 7, 8}, []int64{2, 2, 2, 3}, []*ir.Attr{dilations(3, 2), strides(2, 3)}},
		{[]int64{2, 3, 5, 6}, []int64{3, 1, 3, 3}, []*ir.Attr{group(3), strides(2, 2), auto("SAME_UPPER")}},
		{[]int64{1, 2, 5, 5}, []int64{6, 1, 3, 3}, []*ir.Attr{group(2), auto("SAME_LOWER")}},
		{[]int64{2, 3, 4, 5}, []int64{2, 3, 1, 1}, []*ir.Attr{strides(2, 2)}},
		{[]int64{1, 2, 6, 5}, []int64{2, 2, 3, 2}, []*ir.Attr{strides(4, 3), auto("VALID")}},
		{[]int64{1, 2, 3, 4, 3}, []int64{2, 2, 2, 2, 2}, []*ir.Attr{strides(1, 2, 1), pads(1, 0, 0, 0, 1, 1)}},
	} {
		in := []*ir.Array{values(1, c.x...), values(2, c.w...), values(3, c.w[0])}
		probes = append(probes, probe{op: onnx("Conv"), attrs: c.attrs, in: in})
	}
	probes = append(probes, probe{op: onnx("Conv"), in: []*ir.Array{values(1, 1, 2, 4, 4), values(2, 2, 2, 3, 3)},
		tell: "WithoutBias"})
	for _, c := range []struct {
		x, w  []int64
		attrs []*ir.Attr
	}{
		{[]int64{2, 3, 4}, []int64{3, 2, 3}, []*ir.Attr{strides(2), pads(1, 0)}},
		{[]int64{2, 2, 3, 4}, []int64{2, 3, 3, 2}, []*ir.Attr{strides(2, 1), ir.IntsAttr("output_padding", 1, 0)}},
		{[]int64{1, 4, 3, 3}, []int64{4, 1, 2, 2}, []*ir.Attr{group(2), dilations(2, 1), pads(1, 0, 0, 1)}},
		{[]int64{1, 2, 3, 4}, []int64{2, 2, 3, 3}, []*ir.Attr{strides(2, 2), ir.IntsAttr("output_shape", 6, 8)}},
		{[]int64{1, 2, 2, 3, 2}, []int64{2, 1, 2, 2, 2}, []*ir.Attr{strides(1, 2, 2)}},
	} {
		groups := int64(1)
		for _, a := range c.attrs {
			if a.Name == "group" {
				groups = a.I
			}
		}
		in := []*ir.Array{values(1, c.x...), values(2, c.w...), values(3, c.w[1]*groups)}
		probes = append(probes, probe{op: onnx("ConvTranspose"), attrs: c.attrs, in: in})
	}
	checkAll(t, probes)
}
