package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestLinear(t *testing.T) {
	trans := func(a, b int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr("transA", a), ir.IntAttr("transB", b)} }
	factors := []*ir.Attr{ir.FloatAttr("alpha", 0.5), ir.FloatAttr("beta", 2)}
	fused := ir.OpID{Domain: microsoft, Type: "FusedMatMul"}
	var probes []probe
	for _, shapes := range [][2][]int64{
		{{2, 3}, {3, 4}},
		{{2, 5, 3}, {3, 4}},
		{{2, 1, 5, 3}, {3, 4}},
		{{5, 3}, {2, 3, 4}},
		{{2, 1, 2, 3}, {4, 3, 2}},
		{{1, 2, 3}, {2, 3, 2}},
		{{3}, {3, 2}},
		{{3}, {2, 3, 2}},
		{{2, 3}, {3}},
		{{2, 2, 3}, {3}},
		{{3}, {3}},
	} {
		probes = append(probes, probe{op: onnx("MatMul"),
			in: []*ir.Array{values(1, shapes[0]...), values(2, shapes[1]...)}})
	}
	for _, c := range [][]int64{{2, 4}, {4}, {2, 1}, {}} {
		probes = append(probes, probe{op: onnx("Gemm"), attrs: factors,
			in: []*ir.Array{values(1, 2, 3), values(2, 3, 4), values(3, c...)}})
	}
	checkAll(t, append(probes, []probe{
		{op: onnx("Gemm"), in: []*ir.Array{values(1, 2, 3), values(2, 3, 4)}},
		{op: onnx("Gemm"), attrs: trans(1, 0), in: []*ir.Array{values(1, 3, 2), values(2, 3, 4)}},
		{op: onnx("Gemm"), attrs: trans(0, 1), in: []*ir.Array{values(1, 2, 3), values(2, 4, 3)}},
		{op: onnx("Gemm"), attrs: append(trans(1, 1), factors...),
			in: []*ir.Array{values(1, 3, 2), values(2, 4, 3), values(3, 4)}},
		{op: fused, attrs: factors[:1], in: []*ir.Array{values(1, 2, 2, 3), values(2, 3, 4)}},
		{op: fused, attrs: trans(1, 0), in: []*ir.Array{values(1, 2, 3, 2), values(2, 3, 4)}},
		{op: fused, attrs: trans(0, 1), in: []*ir.Array{values(1, 2, 2, 3), values(2, 2, 4, 3)}},
		{op: fused, attrs: trans(1, 1), in: []*ir.Array{values(1, 2, 3, 2), values(2, 1, 4, 3)}},
	}...))
}

func TestEinsum(t *testing.T) {
	equation := func(s string) []*ir.Attr { return []*ir.Attr{ir.StringAttr("equation", s)} }
	checkAll(t, []probe{
		{op: onnx("Einsum"), attrs: equation("ij,jk->ik"), in: []*ir.Array{values(1, 2, 3), values(2, 3, 4)}},
		{op: onnx("Einsum"), attrs: equation("bij, bkj"), in: []*ir.Array{values(1, 2, 2, 3), values(2, 2, 4, 3)}},
		{op: onnx("Einsum"), attrs: equation("bthd,bshd->bhts"),
			in: []*ir.Array{values(1, 2, 3, 2, 2), values(2, 2, 4, 2, 2)}},
		{op: onnx("Einsum"), attrs: equation("ij,jk,kl->il"),
			in: []*ir.Array{values(1, 2, 3), values(2, 3, 2), values(3, 2, 2)}},
	})
}
