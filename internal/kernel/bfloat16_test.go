package kernel

import (
	"math"
	"testing"
)

// nearestBF16 selects the nearer of the two bfloat16 around a finite v, the even one of a tie. Above the largest it is
// 2^128, which represents for Inf.
func nearestBF16(v float32) uint16 {
	low := uint16(math.Float32bits(v) >> 16)
	below, above := valueBF16(low), valueBF16(low+1)
	switch down, up := math.Abs(float64(v)-below), math.Abs(above-float64(v)); {
	case down < up || down == up && low%2 == 0:
		return low
	default:
		return low + 1
	}
}

func valueBF16(h uint16) float64 {
	if h&0x7fff == 0x7f80 {
		return math.Copysign(0x1p128, float64(int16(h)))
	}
	return float64(math.Float32frombits(uint32(h) << 16))
}

func checkBF16(t *testing.T, x []float32) {
	t.Helper()
	half, intact := guarded[uint16](len(x), 0x1234)
	twin := make([]uint16, len(x))
	BF16FromF32(half, x)
	bf16FromF32Go(twin, x)
	wantSame(t, half, twin)
	intact(t)
	back, backIntact := guarded[float32](len(x), 7)
	wantBack := make([]float32, len(x))
	F32FromBF16(back, half)
	f32FromBF16Go(wantBack, half)
	wantBits(t, back, wantBack)
	backIntact(t)
}

func TestBF16(t *testing.T) {
	eachSample(t, checkBF16)
}

func TestBF16FromF32IsNearest(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		got := make([]uint16, len(x))
		BF16FromF32(got, x)
		for i, v := range x {
			if v != v {
				if back := valueBF16(got[i]); back == back {
					t.Fatalf("NaN became %g", back)
				}
				continue
			}
			if want := nearestBF16(v); !math.IsInf(float64(v), 0) && got[i] != want {
				t.Fatalf("%g (%#08x): got %#04x, want %#04x", v, math.Float32bits(v), got[i], want)
			}
		}
	})
}

func TestBF16RoundTripIsExact(t *testing.T) {
	x, back := make([]uint16, 1<<16), make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
		if i&0x7fff > 0x7f80 {
			x[i] |= 0x40 // a quiet NaN is unchanged, a signalling one would be made quiet
		}
	}
	wide := make([]float32, len(x))
	F32FromBF16(wide, x)
	BF16FromF32(back, wide)
	wantSame(t, back, x)
}

func FuzzBF16(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkBF16(t, x) })
}
