package kernel

import (
	"math"
	"testing"
)

// smallFloats are the formats with the limits of their specifications.
var smallFloats = []struct {
	name             string
	format           SmallFloat
	largest          float32
	smallest, normal float32
}{
	{"e4m3fn", E4M3FN, 448, 0x1p-9, 0x1p-6},
	{"e5m2", E5M2, 57344, 0x1p-16, 0x1p-14},
	{"e2m1", E2M1, 6, 0.5, 1},
}

func TestSmallFloatsHaveTheirSpecifiedNumbers(t *testing.T) {
	for _, f := range smallFloats {
		var got [3]float32
		codes := []byte{f.format.largest, 1, 1 << f.format.fraction}
		f.format.Decode(got[:], codes, 1)
		if want := [3]float32{f.largest, f.smallest, f.normal}; got != want || f.format.Largest() != f.largest {
			t.Errorf("%s: largest, smallest and smallest normal number are %v, want %v", f.name, got, want)
		}
	}
}

// nearestCode searches all numbers for the nearest to v; of two the one with the even encoding.
func nearestCode(f SmallFloat, values *[256]float32, v float32) byte {
	best, a := byte(0), min(math.Abs(float64(v)), 2*float64(f.Largest()))
	for c := byte(1); c <= f.largest; c++ {
		d, least := math.Abs(a-float64(values[c])), math.Abs(a-float64(values[best]))
		if d < least || d == least && c%2 == 0 {
			best = c
		}
	}
	if math.Signbit(float64(v)) {
		best |= f.sign
	}
	return best
}

// Every exponent, with fractions below, at and above each middle between two numbers, is rounded to the nearest.
func TestSmallFloatCodesAreNearest(t *testing.T) {
	for _, f := range smallFloats {
		values := f.format.values
		var x []float32
		for high := range uint32(1 << 13) {
			for _, low := range []uint32{0, 1, 1<<18 - 1, 1 << 18, 1<<18 + 1, 1<<19 - 1} {
				if v := math.Float32frombits(high<<19 | low); !math.IsNaN(float64(v)) {
					x = append(x, v)
				}
			}
		}
		got := make([]byte, len(x))
		f.format.Encode(got, x, 1)
		for i, v := range x {
			if want := nearestCode(f.format, values, v); got[i] != want {
				t.Fatalf("%s: %g: encoded as %#x, want %#x", f.name, v, got[i], want)
			}
		}
	}
}

// Encoding and decoding with a scale has an error of at most half a step of the format.
func TestSmallFloatsUnderAScale(t *testing.T) {
	for _, f := range smallFloats {
		const scale = 0.03
		all := make([]byte, 0, 256)
		for c := range f.format.largest + 1 {
			all = append(all, c, c|f.format.sign)
		}
		x, back := make([]float32, len(all)), make([]byte, len(all))
		f.format.Decode(x, all, scale)
		f.format.Encode(back, x, scale)
		wantSame(t, back, all)
	}
}

// slowCodes encodes one by one.
func slowCodes(f SmallFloat, x []float32, scale float32) []byte {
	codes := make([]byte, len(x))
	for i, v := range x {
		codes[i] = f.encode(v / scale)
	}
	return codes
}

// withoutNaN replaces NaN by 1: NaN is not encoded.
func withoutNaN(x []float32) {
	for i, v := range x {
		if v != v {
			x[i] = 1
		}
	}
}

func checkSmallCodes(t *testing.T, x []float32, scale float32) {
	t.Helper()
	withoutNaN(x)
	for _, f := range smallFloats {
		got, intact := guarded[byte](len(x), 0x5a)
		f.format.Encode(got, x, scale)
		wantSame(t, got, slowCodes(f.format, x, scale))
		intact(t)
		for _, cols := range columns(len(x)) {
			rows, scales := x[:len(x)/cols*cols], make([]float32, cols)
			for j := range scales {
				scales[j] = scale * float32(j+1)
			}
			got, intact := guarded[byte](len(rows), 0x5a)
			f.format.EncodeCols(got, rows, scales)
			intact(t)
			for i, v := range rows {
				if want := f.format.encode(v / scales[i%cols]); got[i] != want {
					t.Fatalf("%s: %g by %g: encoded as %#x, want %#x", f.name, v, scales[i%cols], got[i], want)
				}
			}
		}
	}
}

func TestSmallCodes(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) { checkSmallCodes(t, x, 0.37) })
}

func FuzzSmallCodes(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, b uint32) {
		if scale := math.Float32frombits(b&^(1<<31) | 0x00800000); scale < math.MaxFloat32 {
			withoutNaN(x)
			for _, s := range smallFloats {
				got := make([]byte, len(x))
				s.format.Encode(got, x, scale)
				wantSame(t, got, slowCodes(s.format, x, scale))
			}
		}
	})
}

// TestSmallFloatEncodesAllPatterns covers the patterns of float32 like TestF16FromF32EqualsReference.
func TestSmallFloatEncodesAllPatterns(t *testing.T) {
	step := pieceStep(509)
	x, got := make([]float32, pieceLength), make([]byte, pieceLength)
	for _, f := range smallFloats {
		for piece := 0; piece < 1<<32/pieceLength; piece += step {
			for i := range x {
				x[i] = math.Float32frombits(uint32(piece*pieceLength + i))
			}
			withoutNaN(x)
			f.format.Encode(got, x, 1)
			for i, v := range x {
				if want := f.format.encode(v); got[i] != want {
					t.Fatalf("%s: %#08x: encoded as %#x, want %#x", f.name, math.Float32bits(v), got[i], want)
				}
			}
		}
	}
}

// The errors of a block are those of its decoded values.
func TestBlockErrorsAreThoseOfTheCodes(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		withoutNaN(x)
		x = x[:len(x)/BlockCols*BlockCols]
		if len(x) == 0 {
			return
		}
		var scale [BlockCols]float32
		for j := range scale {
			scale[j] = 0.01 * float32(j+1)
		}
		for _, f := range smallFloats {
			codes, back := make([]byte, len(x)), make([]float32, len(x))
			f.format.EncodeCols(codes, x, scale[:])
			f.format.Decode(back, codes, 1)
			var want [BlockCols]float32
			for i, v := range x {
				d := v - float32(back[i]*scale[i%BlockCols])
				want[i%BlockCols] += float32(d * d)
			}
			got := f.format.BlockErrors(x, &scale)
			wantBits(t, got[:], want[:])
		}
	})
}

func BenchmarkSmallFloatCodes(b *testing.B) {
	x := make([]float32, 1<<14)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	dst := make([]byte, len(x))
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		E4M3FN.Encode(dst, x, 0.01)
	}
}
