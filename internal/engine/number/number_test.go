package number

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

var numbers = []ir.DType{
	ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32, ir.Int64,
	ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64, ir.Bool,
}

func TestWriteReadRoundTrip(t *testing.T) {
	for _, dt := range numbers {
		if err := Check(dt); err != nil {
			t.Error(err)
		}
		a := ir.NewArray(dt, 600)
		want := make([]float64, 599)
		for i := range want {
			want[i] = float64(i % 2)
		}
		Write(a, 1, want)
		got := make([]float64, 599)
		Read(got, a, 1)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: element %d is %v, want %v", dt, i, got[i], want[i])
			}
		}
	}
}

func TestIntegersAreTruncated(t *testing.T) {
	a := ir.NewArray(ir.Int8, 2)
	Write(a, 0, []float64{1.9, -1.9})
	if got := ir.View[int8](a); got[0] != 1 || got[1] != -1 {
		t.Errorf("got %v", got)
	}
}

func TestHalvesAreRounded(t *testing.T) {
	a := ir.NewArray(ir.Float16, 2)
	Write(a, 0, []float64{65519, math.Inf(-1)})
	got := make([]float64, 2)
	Read(got, a, 0)
	if got[0] != 65504 || got[1] != math.Inf(-1) {
		t.Errorf("got %v", got)
	}
}

func TestCheckRejectsOtherTypes(t *testing.T) {
	for _, dt := range []ir.DType{ir.String, ir.Complex64, ir.Int4, ir.Undefined} {
		if Check(dt) == nil {
			t.Errorf("%s is accepted as a numeric type", dt)
		}
	}
}
