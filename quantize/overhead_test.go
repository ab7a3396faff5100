package quantize

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
)

// The decision whether a weight would grow counts nodes and names. The estimate must be an upper bound, or files would
// grow, and close to it, or weights that would shrink are skipped.
func TestOverheadOfNodes(t *testing.T) {
	const n, size = 20, 48
	product := func(s *builder, x *ir.Value) *ir.Value {
		return s.node("MatMul", []*ir.Value{x, s.weight("layer.weight", size, size)})
	}
	conv := func(s *builder, x *ir.Value) *ir.Value {
		return s.node("Conv", []*ir.Value{x, s.weight("layer.weight", size, size, 1)})
	}
	table := func(s *builder, x *ir.Value) *ir.Value {
		ids := s.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Int64)))
		return s.node("Gather", []*ir.Value{s.weight("layer.weight", size, size), ids})
	}
	for _, c := range []struct {
		method  *pass.Method
		layer   func(*builder, *ir.Value) *ir.Value
		perSite int64
		zeros   int64
	}{
		{DynamicInt8{}.Method(), product, rewrite.IntegerProductBytes, 0},
		{WeightInt8{}.Method(), product, rewrite.DequantizeBytes, rewrite.ZeroPointBytes},
		{WeightInt8{}.Method(), conv, rewrite.DequantizeBytes, rewrite.ZeroPointBytes},
		{WeightInt8{}.Method(), table, rewrite.DequantizeBytes, rewrite.ZeroPointBytes},
	} {
		for _, v := range []variant{{c.method, nil}, {c.method, []string{"asymmetric"}}} {
			s := newBuilder(t, 13)
			y := s.input("x", 1, size, size)
			for range n {
				y = c.layer(s, y)
			}
			s.output("y", y)
			s.Outputs[0].Type = nil
			in, out := s.save(), filepath.Join(t.TempDir(), "out.onnx")
			if restoredModel(t, v, in, out, filepath.Join(t.TempDir(), "twin.onnx")) != n {
				t.Fatal("not every weight was taken")
			}
			took := (opened(t, out).Size()-opened(t, in).Size())/n + 4*size*size - size*size - 4*size
			estimate := rewrite.GraphBytes(c.perSite, 1, s.Consts()[n-1]) + size // zero points
			if len(v.options) > 0 {
				estimate += c.zeros
			}
			if took > estimate || estimate > 3*took {
				t.Errorf("%s: %d bytes a weight, estimated %d", v, took, estimate)
			}
		}
	}
}

// Likewise for blockwise weights, of float32 and of float16.
func TestOverheadOfBlockwiseNodes(t *testing.T) {
	const n, size = 20, 64
	for _, c := range []struct {
		perSite, casts int64
		layer          func(s *builder, x *ir.Value) *ir.Value
	}{
		{rewrite.BlockwiseBytes, rewrite.Float16ScaleBytes, func(s *builder, x *ir.Value) *ir.Value {
			return s.node("MatMul", []*ir.Value{x, s.weight("layer.weight", size, size)})
		}},
		{rewrite.BlockwiseBytes, rewrite.Float16ScaleBytes, func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Conv", []*ir.Value{x, s.weight("layer.weight", size, size, 1)})
		}},
		{rewrite.BlockwiseBytes, rewrite.Float16ScaleBytes, func(s *builder, x *ir.Value) *ir.Value {
			ids := s.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Int64)))
			return s.node("Gather", []*ir.Value{s.weight("layer.weight", size, size), ids})
		}},
	} {
		for _, elem := range []ir.DType{ir.Float, ir.Float16} {
			s := newBuilder(t, 21)
			s.elem = elem
			y := s.input("x", 1, size, size)
			for range n {
				y = c.layer(s, y)
			}
			s.output("y", y)
			s.Outputs[0].Type = nil
			in, out := s.save(), filepath.Join(t.TempDir(), "out.onnx")
			took := -opened(t, in).Size()
			for _, row := range int4.on("standard-ops").apply(t, in, out).Report.Ledger {
				took += row.Before.Bytes - row.After.Bytes
			}
			took = (took + opened(t, out).Size()) / n
			estimate := rewrite.GraphBytes(c.perSite, 1, s.Consts()[n-1]) + rewrite.UnpackBytes
			if elem == ir.Float16 {
				estimate += c.casts
			}
			if took > estimate || estimate > 3*took {
				t.Errorf("%s: %d bytes a weight, estimated %d", elem, took, estimate)
			}
		}
	}
}
