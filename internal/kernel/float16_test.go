package kernel

import (
	"math"
	"testing"

	"github.com/x448/float16"
)

// pieces of bit patterns fit the L1 cache.
const pieceLength = 1 << 11

// pieceStep is the step between pieces: sample, a prime, so that pieces cover every exponent at different offsets; or 1
// with -exhaustive, for all patterns.
func pieceStep(sample int) int {
	if *exhaustive {
		return 1
	}
	return sample
}

// TestF16FromF32EqualsReference divides the pieces between two parallel subtests.
func TestF16FromF32EqualsReference(t *testing.T) {
	for first, name := range []string{"even", "odd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := pieceStep(61)
			for piece := first * step; piece < 1<<32/pieceLength; piece += 2 * step {
				checkF16Piece(t, uint32(piece*pieceLength))
			}
		})
	}
}

func checkF16Piece(t *testing.T, from uint32) {
	t.Helper()
	var x [pieceLength]float32
	var got [pieceLength]uint16
	for i := range x {
		x[i] = math.Float32frombits(from + uint32(i))
	}
	F16FromF32(got[:], x[:])
	for i, v := range x {
		if want := float16.Fromfloat32(v).Bits(); got[i] != want {
			t.Fatalf("%#08x: got %#04x, want %#04x", math.Float32bits(v), got[i], want)
		}
	}
}

func TestF32FromF16EqualsReference(t *testing.T) {
	x := make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	got := make([]float32, len(x))
	F32FromF16(got, x)
	for i, h := range x {
		want := math.Float32bits(float16.Frombits(h).Float32())
		if g := math.Float32bits(got[i]); g != want {
			t.Fatalf("%#04x: got %#08x, want %#08x", h, g, want)
		}
	}
}

func checkF16(t *testing.T, x []float32) {
	t.Helper()
	half, intact := guarded[uint16](len(x), 0x1234)
	want := make([]uint16, len(x))
	F16FromF32(half, x)
	f16FromF32Go(want, x)
	wantSame(t, half, want)
	intact(t)
	back, backIntact := guarded[float32](len(x), 7)
	wantBack := make([]float32, len(x))
	F32FromF16(back, half)
	f32FromF16Go(wantBack, half)
	wantBits(t, back, wantBack)
	backIntact(t)
}

func TestF16(t *testing.T) {
	eachSample(t, checkF16)
}

func FuzzF16(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkF16(t, x) })
}
