package ir

import (
	"slices"
	"testing"
	"unsafe"
)

func TestViewSharesMemory(t *testing.T) {
	a := NewArray(Float, 2, 3)
	View[float32](a)[4] = 1.5
	if got := View[float32](a); !slices.Equal(got, []float32{0, 0, 0, 0, 1.5, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestViewOfAnotherWidthPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	View[float64](NewArray(Float, 2))
}

func TestArrayOfKeepsTypeAndElements(t *testing.T) {
	a := ArrayOf([]int64{7, -1}, 2)
	if a.DType != Int64 || a.Bytes() != 16 || View[int64](a)[1] != -1 {
		t.Errorf("got %v %v", a, a.Data)
	}
}

func TestAlignedBytes(t *testing.T) {
	for n := int64(1); n < 300; n += 7 {
		b := AlignedBytes(n)
		if int64(len(b)) != n || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
			t.Fatalf("%d bytes at %p for %d", len(b), &b[0], n)
		}
	}
}

func TestCloneIsAligned(t *testing.T) {
	for n := range int64(100) {
		a := NewArray(Uint8, 1+n*n)
		a.Data[len(a.Data)-1] = 7
		b := a.Clone()
		if !slices.Equal(b.Data, a.Data) || uintptr(unsafe.Pointer(&b.Data[0]))%64 != 0 {
			t.Fatalf("%d bytes at %p for %d", len(b.Data), &b.Data[0], len(a.Data))
		}
	}
	if b := NewArray(Uint8, 0).Clone(); len(b.Data) != 0 {
		t.Errorf("%d bytes for none", len(b.Data))
	}
}

func TestCloneSharesNothing(t *testing.T) {
	a := &Array{Kind: Sequence, Items: []*Array{ArrayOf([]int32{1, 2}, 2), TextOf([]string{"a"}, 1)}}
	c := a.Clone()
	View[int32](c.Items[0])[0] = 9
	c.Items[1].Text[0] = "b"
	if View[int32](a.Items[0])[0] != 1 || a.Items[1].Text[0] != "a" {
		t.Error("the copy shares memory with the original")
	}
}
