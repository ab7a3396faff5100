package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

func TestBytesAreLittleEndian(t *testing.T) {
	x := []float32{1, -2.5, float32(math.Inf(1))}
	var want []byte
	for _, f := range x {
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(f))
	}
	if got := Bytes(x); !bytes.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
	if got := Words[float32](Bytes(x)); !slices.Equal(got, x) {
		t.Errorf("got %v, want %v", got, x)
	}
	if Bytes([]uint16{}) != nil || Words[uint64](nil) != nil {
		t.Error("an empty slice has memory")
	}
}

func TestWordsShareMemory(t *testing.T) {
	b := Bytes(make([]uint64, 4))
	Words[uint16](b)[3] = 0x1234
	if got := Words[uint64](b)[0]; got != 0x1234<<48 {
		t.Errorf("got %#x", got)
	}
}

func TestAligned(t *testing.T) {
	b := Bytes(make([]uint64, 4))
	for i := range 8 {
		for _, size := range []int64{2, 4, 8} {
			if got, want := Aligned(b[i:], size), int64(i)%size == 0; got != want {
				t.Errorf("offset %d, size %d: %v, want %v", i, size, got, want)
			}
		}
	}
	if !Aligned(nil, 8) {
		t.Error("an empty slice is not aligned")
	}
}
