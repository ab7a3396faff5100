package weights

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A product whose output has no name is valid, and nothing consumes it.
func TestProductWithoutOutput(t *testing.T) {
	g := ir.NewModel().Graph
	x := g.NewValue("x")
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 2}}, Source: ir.Floats(1, 2, 3, 4)})
	n := g.NewNode(ir.OpID{Type: "MatMul"}, []*ir.Value{x, w})
	n.SetOutputs(nil)
	g.Append(n)
	if c := ConsumerAt(n, false); c != nil {
		t.Errorf("%+v, want none", c)
	}
	n.SetOutputs(g.NewValue("y"))
	if c := ConsumerAt(n, false); c == nil {
		t.Error("no consumer, want the product")
	}
}

// The channel axis of a constant is that of the outputs of a product, or of the rows that are looked up, whatever the
// operand, the transposition and the batch.
func TestChannelAxis(t *testing.T) {
	const channels = 5
	transA, transB := ir.IntAttr("transA", 1), ir.IntAttr("transB", 1)
	for _, c := range []struct {
		op    string
		index int // of the constant
		shape []int64
		turns bool // a Transpose is between the constant and the node
		attrs []*ir.Attr
		want  int
	}{
		{"MatMul", 1, []int64{3, channels}, false, nil, 1},
		{"MatMul", 1, []int64{channels, 3}, true, nil, 0},
		{"MatMul", 1, []int64{2, 3, channels}, false, nil, 2},
		{"MatMul", 0, []int64{channels, 3}, false, nil, 0},
		{"MatMul", 0, []int64{3, channels}, true, nil, 1},
		{"MatMul", 0, []int64{2, channels, 3}, false, nil, 1},
		{"MatMul", 1, []int64{3}, false, nil, -1},
		{"Gemm", 1, []int64{3, channels}, false, nil, 1},
		{"Gemm", 1, []int64{channels, 3}, false, []*ir.Attr{transB}, 0},
		{"Gemm", 1, []int64{3, channels}, true, []*ir.Attr{transB}, 1},
		{"Gemm", 0, []int64{channels, 3}, false, nil, 0},
		{"Gemm", 0, []int64{3, channels}, false, []*ir.Attr{transA}, 1},
		{"Gather", 0, []int64{channels, 3}, false, nil, 0},
	} {
		g := ir.NewModel().Graph
		x := g.NewValue("x")
		g.Inputs = append(g.Inputs, x)
		w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: c.shape},
			Source: ir.Mem(make([]byte, 4*(ir.Spec{Shape: c.shape}).Elems()))})
		if c.turns {
			w = g.Insert(nil, "Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0))
		}
		in := []*ir.Value{x, x}
		in[c.index] = w
		y := g.Insert(nil, c.op, in, c.attrs...)
		s := ConsumerAt(y.Producer(), true)
		if s == nil {
			t.Errorf("%s of %v: no consumer", c.op, c.shape)
			continue
		}
		if got := s.ChannelAxis(); got != c.want {
			t.Errorf("%s with input %d of %v, transposed %t, %d attributes: channel axis %d, want %d", c.op, c.index, c.shape,
				c.turns, len(c.attrs), got, c.want)
		}
		if got := s.BaseShape(); !slices.Equal(got, c.shape) {
			t.Errorf("%s with input %d of %v: base shape %v", c.op, c.index, c.shape, got)
		}
		if s.Activation() != x {
			t.Errorf("%s with input %d: the activation is not x", c.op, c.index)
		}
		if s.Side == Left || len(c.shape) != 2 {
			continue
		}
		if rows, cols, columnMajor := s.Matrix(); cols != channels || rows != 3 || columnMajor != (c.want == 0) {
			t.Errorf("%s of %v: a matrix of %d × %d, column-major %t", c.op, c.shape, rows, cols, columnMajor)
		}
	}
}
