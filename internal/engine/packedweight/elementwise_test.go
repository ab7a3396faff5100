package packedweight

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// The product of sparse elements and a factor for each index of the first axis is sparse, that with others is not.
func TestSparseProductsAreSparse(t *testing.T) {
	s := NewSparse(2, []int64{1, 7}, []float32{3, 5})
	w := &ir.Array{DType: ir.Float, Shape: []int64{2, 2, 2}}
	for _, c := range []struct {
		factors *ir.Array
		want    []float32
	}{
		{ir.ArrayOf([]float32{2, 10}, 2, 1, 1), []float32{6, 50}},
		{&ir.Array{DType: ir.Float, Shape: []int64{2, 1, 1}}, []float32{3, 5}}, // while memory is planned
		{ir.ArrayOf([]float32{2, 10}, 1, 1, 2), nil},
		{ir.ArrayOf([]float32{2, 10}, 2, 1), nil},
		{ir.ArrayOf([]float32{2}, 1, 1, 1), nil},
	} {
		got, _ := Mul(nil, []*ir.Array{w, c.factors}, []op.Packed{s, nil}).(*Sparse)
		if got == nil {
			got = &Sparse{}
		}
		if !slices.Equal(got.Values, c.want) {
			t.Errorf("factors %v: values %v, want %v", c.factors.Shape, got.Values, c.want)
		}
	}
}
