package packedweight

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func TestSparseDecodes(t *testing.T) {
	s := NewSparse(5, []int64{1, 4, 6, 9, 11}, []float32{10, 40, 0, 90, 110})
	if s.Bytes() != 4*8 { // a zero is not stored
		t.Errorf("%d bytes", s.Bytes())
	}
	if got, want := ir.View[float32](Dense(s, []int64{3, 4})),
		[]float32{0, 10, 0, 0, 40, 0, 0, 0, 0, 90, 0, 110}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got := []float32{7, 7, 7, 7, 7, 7}
	// columns 1 and 2 of all rows, transposed
	s.Decode(got, op.Part{At: 1, Stride: 4, Rows: 3, Cols: 2, DstRow: 1, DstCol: 3})
	if want := []float32{10, 0, 90, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSparseIsScaled(t *testing.T) {
	s := NewSparse(3, []int64{1, 4, 6}, []float32{10, 40, 60}).Scaled([]float32{2, -1}, 4)
	if got, want := ir.View[float32](Dense(s, []int64{2, 4})),
		[]float32{0, 20, 0, 0, -40, 0, -60, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSparsePositionsAscend(t *testing.T) {
	for _, p := range [][]int64{{1, 1}, {2, 1}, {0, 1 << 31}} {
		if NewSparse(2, p, []float32{1, 2}) != nil {
			t.Errorf("positions %v are accepted", p)
		}
	}
	if n := NewSparse[int32](2, nil, nil).Bytes(); n != 16 {
		t.Errorf("%d bytes while memory is planned", n)
	}
}

func TestFilledDecodes(t *testing.T) {
	if got := ir.View[float32](Dense(Filled(3), []int64{2, 2})); !slices.Equal(got, []float32{3, 3, 3, 3}) {
		t.Errorf("got %v", got)
	}
}
