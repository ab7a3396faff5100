package grad

import (
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestPools(t *testing.T) {
	kernel := func(is ...int64) *ir.Attr { return ir.IntsAttr("kernel_shape", is...) }
	strides := func(is ...int64) *ir.Attr { return ir.IntsAttr("strides", is...) }
	pads := func(is ...int64) *ir.Attr { return ir.IntsAttr("pads", is...) }
	dilations := func(is ...int64) *ir.Attr { return ir.IntsAttr("dilations", is...) }
	ceil := ir.IntAttr("ceil_mode", 1)
	var probes []probe
	for i, c := range []struct {
		x     []int64
		attrs []*ir.Attr
	}{
		{[]int64{2, 2, 9}, []*ir.Attr{kernel(3), strides(2), pads(1, 1)}},
		{[]int64{2, 3, 4, 6}, []*ir.Attr{kernel(2, 2), strides(2, 2)}},
		{[]int64{1, 2, 6, 7}, []*ir.Attr{kernel(3, 3), strides(2, 2), pads(1, 1, 1, 1)}},
		{[]int64{1, 2, 6, 7}, []*ir.Attr{kernel(3, 2), strides(2, 3), ceil}},
		{[]int64{1, 2, 7, 8}, []*ir.Attr{kernel(2, 3), dilations(3, 2), pads(2, 0, 1, 3)}},
		{[]int64{1, 2, 5, 6}, []*ir.Attr{kernel(3, 3), ir.StringAttr("auto_pad", "SAME_UPPER")}},
		{[]int64{1, 1, 3, 4, 5}, []*ir.Attr{kernel(2, 2, 3), strides(1, 2, 1)}},
		{[]int64{1, 1, 18, 17}, []*ir.Attr{kernel(17, 17)}},
	} {
		tell := fmt.Sprint(i)
		probes = append(probes,
			probe{op: onnx("MaxPool"), attrs: c.attrs, in: []*ir.Array{separated(1, c.x...)}, tell: tell},
			probe{op: onnx("AveragePool"), attrs: c.attrs, in: []*ir.Array{values(1, c.x...)}, tell: tell},
			probe{op: onnx("AveragePool"), attrs: append(c.attrs, ir.IntAttr("count_include_pad", 1)),
				in: []*ir.Array{values(1, c.x...)}, tell: tell + "Padding"},
		)
	}
	checkAll(t, append(probes,
		probe{op: onnx("GlobalAveragePool"), in: []*ir.Array{values(1, 2, 3, 4, 5)}},
		probe{op: onnx("GlobalMaxPool"), in: []*ir.Array{separated(1, 2, 3, 4, 5)}},
		probe{op: onnx("GlobalMaxPool"), in: []*ir.Array{separated(1, 1, 2, 300)}},
	))
}

// A pool whose output of indices is consumed is unchanged, and has no backward pass.
func TestMaxPoolWithIndices(t *testing.T) {
	p := probe{op: onnx("MaxPool"), attrs: []*ir.Attr{ir.IntsAttr("kernel_shape", 2)},
		in: []*ir.Array{separated(1, 1, 1, 4)}, outputs: 2}
	tape, err := New(t.Context(), p.model(), Options{Inputs: map[string]ir.Spec{"x0": {DType: ir.Double,
		Shape: []int64{1, 1, 4}}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := tape.Graph().First(); n.Op.Type != "MaxPool" {
		t.Errorf("replaced by %s", n.Op)
	}
}
