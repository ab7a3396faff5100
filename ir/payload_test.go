package ir_test

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestIntsComeBack(t *testing.T) {
	want := []int64{0, -1, 1 << 40, -1 << 63}
	if got, ok := ir.ParseInts(ir.Int64, ir.Ints(want...)); !ok || !slices.Equal(got, want) {
		t.Errorf("got %v %v, want %v", got, ok, want)
	}
}

func TestInt32HasASign(t *testing.T) {
	got, ok := ir.ParseInts(ir.Int32, []byte{0xfe, 0xff, 0xff, 0xff, 2, 0, 0, 0})
	if want := []int64{-2, 2}; !ok || !slices.Equal(got, want) {
		t.Errorf("got %v %v, want %v", got, ok, want)
	}
}

func TestOtherTypesAreNoInts(t *testing.T) {
	if got, ok := ir.ParseInts(ir.Uint8, []byte{1}); ok {
		t.Errorf("got %v", got)
	}
}

func TestFloatsAreLittleEndian(t *testing.T) {
	if got, want := ir.Floats(1, -2), (ir.Mem{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}); !slices.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
}
