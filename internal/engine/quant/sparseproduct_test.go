package quant

import (
	"bytes"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/ir"
)

// mostly replaces values by zero points, except for one of fifteen. Zero points are one or one for each column.
func mostly(zeros, b *ir.Array) {
	cols := int(b.Shape[1])
	for i := range b.Data {
		if i%15 != 0 {
			b.Data[i] = zeros.Data[i%cols%len(zeros.Data)]
		}
	}
}

// A constant B most of which are zero points is multiplied as a sparse matrix, and results are those of the dense one.
// The zero points may not be constants.
func TestSparseProductsAreBitIdentical(t *testing.T) {
	for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
		for _, rows := range []int64{1, 5, 70} {
			for _, n := range []int64{1, 300} {
				a, b := quantizedValues(1, ir.Uint8, rows, 270), quantizedValues(2, dt, 270, 300)
				za, zb, zy := quantizedValues(3, ir.Uint8, 1), quantizedValues(4, dt, n), quantizedValues(5, ir.Int8, 1)
				mostly(zb, b)
				x, sb, bias := random(6, rows, 270), scale(7, 300), random(8, 300)
				for _, c := range []struct {
					name string
					in   []*ir.Array
				}{
					{"MatMulInteger", []*ir.Array{a, b, za, zb}},
					{"MatMulInteger", []*ir.Array{as8(a, ir.Int8), b, as8(za, ir.Int8), zb}},
					{"QLinearMatMul", []*ir.Array{a, one(0.03), za, b, sb, zb, one(2.5), zy}},
					{"MatMulIntegerToFloat", []*ir.Array{a, b, one(0.03), sb, za, zb, bias}},
					{"QuantizedMatMul", []*ir.Array{x, b, sb, zb, bias}},
				} {
					want, err := compute(c.name, nil, 1, 1, c.in)
					if err != nil {
						t.Fatal(err)
					}
					for _, constant := range [][]int{allButFirst(c.in), {1, 3}} {
						if got, err := compute(c.name, nil, 3, 1, c.in, constant...); err != nil ||
							!bytes.Equal(got[0].Data, want[0].Data) {
							t.Errorf("%s, %d rows of %s, %d zero points, constants %v: not bit-identical, %v", c.name,
								rows, dt, n, constant, err)
						}
					}
				}
			}
		}
	}
}

// Zero points that are not constants are subtracted from products of a B whose values are mostly 0.
func TestSparseProductsSubtractZeroPoints(t *testing.T) {
	b, zb := quantizedValues(1, ir.Int8, 270, 300), quantizedValues(2, ir.Int8, 300)
	mostly(ir.NewArray(ir.Int8, 1), b)
	in := []*ir.Array{quantizedValues(3, ir.Uint8, 5, 270), b, quantizedValues(4, ir.Uint8, 1), zb}
	want, err := compute("MatMulInteger", nil, 1, 1, in)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := compute("MatMulInteger", nil, 3, 1, in, 1); err != nil || !bytes.Equal(got[0].Data, want[0].Data) {
		t.Errorf("not bit-identical, %v", err)
	}
}

// as8 is a with the same bytes as another 8-bit type.
func as8(a *ir.Array, dt ir.DType) *ir.Array {
	return &ir.Array{DType: dt, Shape: a.Shape, Data: a.Data}
}

// Weights with few zero points, and those whose sums float32 does not represent, stay dense.
func TestSparseProductsArePacked(t *testing.T) {
	zero := ir.NewArray(ir.Int8, 1)
	for name, c := range map[string]struct {
		k, n   int64
		of     int  // one value of these is not zero
		signs  bool // every second one is negative
		sparse bool
	}{
		"sparse": {300, 300, 17, false, true}, "dense": {300, 300, 5, false, false},
		"small": {20, 20, 15, false, false},
		"long":  {3000, 20, 12, false, false}, "long, of both signs": {3000, 20, 12, true, true},
	} {
		b := ir.NewArray(ir.Int8, c.k, c.n)
		for i := 0; i < len(b.Data); i += c.of {
			b.Data[i] = 127
			if c.signs && i/c.of%2 == 1 {
				b.Data[i] = 0x81
			}
		}
		n := rowOf("MatMulInteger")
		made, err := n.Prepare(op.NewNode(ir.OpID{Type: "MatMulInteger"}, 25, nil, nil),
			[]*ir.Array{nil, b, nil, zero}, op.NewPool(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := made.State.(*spmm.Matrix); ok != c.sparse {
			t.Errorf("%s: sparse is %v", name, ok)
		}
		if c.sparse && !c.signs && float64(made.Bytes) > 1.2*float64(2*len(b.Data)/c.of+4*int(c.n)) {
			t.Errorf("%s: %d bytes", name, made.Bytes)
		}
	}
}

// Convolutions of quantized images with weights most of which are zero points have the results of the dense weights.
func TestSparseIntegerConvIsBitIdentical(t *testing.T) {
	for i, l := range []struct {
		x, w   []int64
		a      attrs
		zeros  int64
		values ir.DType
	}{
		{[]int64{2, 7, 9, 130}, []int64{130, 130, 1, 1}, attrs{}, 1, ir.Int8},
		{[]int64{2, 19, 21, 40}, []int64{70, 40, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}, 70, ir.Int8},
		{[]int64{1, 61, 67, 40}, []int64{68, 40, 3, 3}, attrs{"pads": []int{0, 1, 2, 1}, "strides": []int{2, 2}}, 1,
			ir.Uint8},
		// in several bands
		{[]int64{1, 90, 90, 64}, []int64{64, 64, 3, 3}, attrs{"dilations": []int{2, 1}}, 64, ir.Uint8},
		{[]int64{1, 3, 3, 400}, []int64{20, 400, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}, 1, ir.Int8},
	} {
		w, zero := quantizedValues(2, l.values, l.w...), quantizedValues(3, l.values, l.zeros)
		size := len(w.Data) / int(l.w[0])
		for at := range w.Data {
			if at%12 != 0 {
				w.Data[at] = zero.Data[at/size%len(zero.Data)]
			}
		}
		made, err := rowOf("IntegerConv").Prepare(op.NewNode(ir.OpID{Type: "IntegerConv"}, 1, l.a.List(), nil),
			[]*ir.Array{nil, w, nil, nil, nil, nil, zero, nil, nil}, op.NewPool(2))
		if err != nil || made.State.(*integerWeights).sparse == nil {
			t.Fatalf("layer %d is not packed, %v", i, err)
		}
		for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
			x, xZero := quantizedValues(1, dt, l.x...), quantizedValues(4, dt, 1)
			must(t, "IntegerConv", l.a, x, w, random(5, l.w[0]), one(0.02), xZero, scale(6, l.w[0]), zero, one(0.9),
				quantizedValues(7, ir.Int8, 1))
		}
	}
}
