package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// Twin and assembly are tested on the same samples: every length around the vector and strip sizes, each with ordinary
// numbers, arbitrary bits, ties and special values, at unaligned addresses.

var specials = []uint32{
	0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
	0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff, 0x7fffffff,
	0x3f000000, 0xbf000000, 0x33000000, 0x33000001, 0x387fffff, 0x477fefff, 0x477ff000,
	0x4b000000, 0x49800000, 0xc9800001, 0x4f000000, 0xcf000000,
}

var sampleKinds = []struct {
	name string
	next func(r *rand.Rand) float32
}{
	{"normal", func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }},
	{"bits", func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) }},
	{"ties", func(r *rand.Rand) float32 { return float32(r.IntN(521)-260) / 2 }},
	{"sparse", func(r *rand.Rand) float32 { return float32(max(0, r.IntN(10)-8)) }},
	{"special", func(r *rand.Rand) float32 { return math.Float32frombits(specials[r.IntN(len(specials))]) }},
}

func sampleLengths() []int {
	var n []int
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 1023, 1024, 1025, 2047, 2049, 4100)
}

// eachSample calls check with its own copy of every sample.
func eachSample(t *testing.T, check func(t *testing.T, x []float32)) {
	for _, kind := range sampleKinds {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 0))
			for _, n := range sampleLengths() {
				x := make([]float32, n+3)[3:]
				for i := range x {
					x[i] = kind.next(r)
				}
				check(t, x)
			}
		})
	}
}

// fuzzFloats seeds f with samples and calls check with the fuzzer's bytes as float32 bits.
func fuzzFloats(f *testing.F, check func(t *testing.T, x []float32, a, b uint32)) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, kind := range sampleKinds {
		var raw []byte
		for range 77 {
			raw = binary.NativeEndian.AppendUint32(raw, math.Float32bits(kind.next(r)))
		}
		f.Add(raw, uint32(9), uint32(0x3f800000))
	}
	f.Fuzz(func(t *testing.T, raw []byte, a, b uint32) {
		x := make([]float32, len(raw)/4)
		for i := range x {
			x[i] = math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:]))
		}
		check(t, x, a, b)
	})
}

// wantBits compares by bits, so that NaN equals itself and -0 differs from +0.
func wantBits(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
			t.Fatalf("element %d of %d: got %#08x, want %#08x", i, len(want), g, w)
		}
	}
}

func wantSame[T comparable](t *testing.T, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("element %d of %d: got %v, want %v", i, len(want), got[i], want[i])
		}
	}
}

// guarded returns n elements with a guard around them, and a function that checks that the guard was not written.
func guarded[T comparable](n int, guard T) (s []T, check func(t *testing.T)) {
	const margin = 40
	all := make([]T, n+2*margin)
	for i := range all {
		all[i] = guard
	}
	return all[margin : margin+n : margin+n], func(t *testing.T) {
		t.Helper()
		for i, v := range all {
			if (i < margin || i >= margin+n) && v != guard {
				t.Fatalf("wrote to element %d of %d", i-margin, n)
			}
		}
	}
}

// columns are the row widths that divide a sample of n elements.
func columns(n int) []int {
	var c []int
	for _, cols := range []int{1, 3, 7, 8, 9, 31, 33, 40, 129} {
		if cols <= n {
			c = append(c, cols)
		}
	}
	return c
}

// wantPanic fails unless f panics, as it must for wrong lengths.
func wantPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: did not panic", name)
		}
	}()
	f()
}
