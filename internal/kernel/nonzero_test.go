package kernel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

var elementSizes = []int{1, 2, 4, 8}

// checkSparse compares NonZero, Compress and Expand with their definitions.
func checkSparse(t *testing.T, data []byte, size int) {
	t.Helper()
	data = data[:len(data)/size*size]
	n := len(data) / size
	wantMask, wantValues, count := make([]byte, (n+7)/8), []byte{9}, 0
	for i := range n {
		element := data[i*size : (i+1)*size]
		if !bytes.Equal(element, make([]byte, size)) {
			wantMask[i/8] |= 1 << (i % 8)
			wantValues = append(wantValues, element...)
			count++
		}
	}
	mask, intact := guarded[byte](len(wantMask), 0xa5)
	if got := NonZero(mask, data, size); got != count {
		t.Fatalf("%d values, want %d", got, count)
	}
	wantSame(t, mask, wantMask)
	intact(t)
	values := Compress([]byte{9}, data, size)
	wantSame(t, values, wantValues)
	checkExpand(t, mask, values[1:], data, size)
}

func checkExpand(t *testing.T, mask, values, want []byte, size int) {
	t.Helper()
	got, intact := guarded[byte](len(want), 0xa5)
	if used := Expand(got, mask, values, size); used != len(values) {
		t.Fatalf("used %d bytes of %d", used, len(values))
	}
	wantSame(t, got, want)
	intact(t)
}

// sparseBytes has runs of zeros and of values; runs of both occur at every element size.
func sparseBytes(n int, density float64) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	data := make([]byte, n+1)[1:]
	for i := range data {
		if r.Float64() < density {
			data[i] = byte(r.IntN(256))
		}
	}
	return data
}

func TestSparse(t *testing.T) {
	for _, size := range elementSizes {
		for _, n := range sampleLengths() {
			for _, density := range []float64{0, 0.03, 0.3, 1} {
				checkSparse(t, sparseBytes(n*size, density), size)
			}
		}
	}
}

func TestNonZeroTakesNegativeZeroForAValue(t *testing.T) {
	mask := make([]byte, 1)
	if got := NonZero(mask, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 4); got != 1 || mask[0] != 2 {
		t.Errorf("got %d, mask %b", got, mask[0])
	}
}

func TestCompressKeepsSpareCapacity(t *testing.T) {
	all := slices.Repeat([]byte{7}, 500)
	out := Compress(all[:0], sparseBytes(256, 0.1), 4)
	if !bytes.Equal(all[len(out):], slices.Repeat([]byte{7}, 500-len(out))) {
		t.Error("wrote beyond the appended elements")
	}
}

func TestExpandIgnoresBitsAfterTheLastElement(t *testing.T) {
	dst := make([]byte, 3)
	if used := Expand(dst, []byte{0xfd}, []byte{5, 6}, 1); used != 2 || !bytes.Equal(dst, []byte{5, 0, 6}) {
		t.Errorf("used %d, got %v", used, dst)
	}
}

func TestSparseRefusesWrongLengths(t *testing.T) {
	b := make([]byte, 16)
	wantPanic(t, "3-byte elements", func() { NonZero(b[:1], b[:15], 3) })
	wantPanic(t, "half an element", func() { Compress(nil, b[:15], 4) })
	wantPanic(t, "long mask", func() { NonZero(b[:2], b, 4) })
	wantPanic(t, "short mask", func() { Expand(b, nil, b, 4) })
	wantPanic(t, "short values", func() { Expand(b, []byte{3}, b[:4], 4) })
}

func FuzzSparse(f *testing.F) {
	f.Add(sparseBytes(300, 0.2), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		checkSparse(t, data, elementSizes[kind%4])
	})
}

// -0.0 is found in floats of all sizes, by all of its bits.
func TestNegativeZeros(t *testing.T) {
	for size, data := range map[int][]byte{
		2: {0, 0x80, 1, 0x80, 0x80, 0, 0, 0, 0, 0x80},
		4: {0, 0, 0, 0x80, 0, 0, 1, 0x80, 0x80, 0, 0, 0, 0, 0, 0, 0x80},
		8: {0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80},
	} {
		if n := NegativeZeros(data, size); n != 2 {
			t.Errorf("size %d: %d elements, want 2", size, n)
		}
		want := slices.Clone(data)
		want[size-1], want[len(want)-1] = 0, 0
		if PositiveZeros(data, size); !slices.Equal(data, want) {
			t.Errorf("size %d: %x, want %x", size, data, want)
		}
	}
}
