package block

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// stored returns x as written to and read from an array of type dt.
func stored[T ir.Element](dt ir.DType, x ...T) []T {
	a := ir.NewArray(dt, int64(len(x)))
	w := Write[T](a)
	y := w.Block(make([]T, len(x)), 0, len(x))
	copy(y, x)
	w.Done(0, y)
	return Read[T](a).Block(make([]T, len(x)), 0, len(x))
}

func TestIntegersKeepTheirLowBits(t *testing.T) {
	for _, dt := range []ir.DType{ir.Int8, ir.Int16, ir.Int32} {
		least := int64(-1) << (dt.Bits() - 1)
		want := []int64{least, -1, 5, ^least}
		if got := stored(dt, least, -1, 5+1<<dt.Bits(), ^least-1<<dt.Bits()); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", dt, got, want)
		}
	}
	for dt, want := range map[ir.DType][]uint64{
		ir.Bool:   {1, 0},
		ir.Uint8:  {math.MaxUint8, 0},
		ir.Uint16: {math.MaxUint16, 0},
		ir.Uint32: {math.MaxUint32, 0},
		ir.Uint64: {math.MaxUint64, 0},
	} {
		if got := stored(dt, math.MaxUint64, uint64(0)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", dt, got, want)
		}
	}
}

func TestNumbersAsFloat64(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Uint8, ir.Int32,
		ir.Uint32, ir.Int64, ir.Uint64} {
		if got := stored(dt, 3.0, 100); !slices.Equal(got, []float64{3, 100}) {
			t.Errorf("%s: %v", dt, got)
		}
	}
}

func TestElementsAreReadOneByOne(t *testing.T) {
	a := ir.ArrayOf([]int16{-1, 2}, 2)
	Write[int64](a).Set(1, -7)
	if r := Read[int64](a); r.One(0) != -1 || r.One(1) != -7 || r.Direct() != nil {
		t.Errorf("%d, %d", r.One(0), r.One(1))
	}
}
