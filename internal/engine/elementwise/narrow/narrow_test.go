package narrow

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

var floats = []ir.DType{
	ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ, ir.Float8E8M0,
	ir.Float6E2M3, ir.Float6E3M2, ir.Float4E2M1,
}

func value(dt ir.DType, code int) float32 { return decode(dt, uint8(code)) }

func encoded(dt ir.DType, v float32, r Rounding) uint8 {
	b := make([]byte, 1)
	EncodeFloats(b, []float32{v}, dt, r)
	return b[0]
}

func TestEncodingRoundTrip(t *testing.T) {
	for _, dt := range floats {
		for code := range 1 << dt.Bits() {
			v := value(dt, code)
			if got := encoded(dt, v, Rounding{Saturate: true}); v == v && !math.IsInf(float64(v), 0) &&
				got != uint8(code) {
				t.Errorf("%s: %#x is %v, which is encoded as %#x", dt, code, v, got)
			}
		}
	}
}

// The largest numbers by the specification.
func TestLargest(t *testing.T) {
	for dt, want := range map[ir.DType]float32{
		ir.Float8E4M3FN: 448, ir.Float8E4M3FNUZ: 240, ir.Float8E5M2: 57344, ir.Float8E5M2FNUZ: 57344,
		ir.Float6E2M3: 7.5, ir.Float6E3M2: 28, ir.Float4E2M1: 6, ir.Float8E8M0: 0x1p127,
	} {
		if got := value(dt, int(encoded(dt, math.MaxFloat32, Rounding{Saturate: true, Mode: "down"}))); got != want {
			t.Errorf("%s: %v, want %v", dt, got, want)
		}
	}
}

func TestRoundingIsToNearestHalfToEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dt := range floats {
		if dt == ir.Float8E8M0 {
			continue
		}
		for range 3000 {
			v := float32(rng.NormFloat64() * math.Exp(rng.NormFloat64()*4))
			if rng.IntN(2) == 0 { // halfway between two neighbours
				code := rng.IntN(int(formats[dt].largest))
				v = (value(dt, code) + value(dt, code+1)) / 2
			}
			code := int(encoded(dt, v, Rounding{Saturate: true}))
			distance := math.Abs(float64(value(dt, code)) - float64(v))
			for other := range 1 << dt.Bits() {
				d := math.Abs(float64(value(dt, other)) - float64(v))
				if d < distance || d == distance && code&1 == 1 && other&1 == 0 {
					t.Fatalf("%s: %v becomes %v, but %v is nearer or even", dt, v, value(dt, code), value(dt, other))
				}
			}
		}
	}
}

// The tables of the specification of Cast.
func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	clamp, raw, old := Rounding{Saturate: true}, Rounding{}, Rounding{Saturate: true, InfIsNaN: true}
	for _, c := range []struct {
		dt   ir.DType
		v    float32
		r    Rounding
		want uint8
	}{
		{ir.Float8E4M3FN, inf, clamp, 0x7e}, {ir.Float8E4M3FN, -inf, clamp, 0xfe}, {ir.Float8E4M3FN, inf, raw, 0x7f},
		{ir.Float8E4M3FN, nan, raw, 0x7f}, {ir.Float8E4M3FN, 464, raw, 0x7e}, {ir.Float8E4M3FN, 465, raw, 0x7f},
		{ir.Float8E4M3FN, 465, clamp, 0x7e},
		{ir.Float8E4M3FNUZ, inf, clamp, 0x7f}, {ir.Float8E4M3FNUZ, inf, old, 0x80},
		{ir.Float8E4M3FNUZ, -1e6, old, 0xff}, {ir.Float8E4M3FNUZ, float32(math.Copysign(0, -1)), raw, 0},
		{ir.Float8E5M2, inf, clamp, 0x7b}, {ir.Float8E5M2, -inf, raw, 0xfc}, {ir.Float8E5M2, 1e9, raw, 0x7c},
		{ir.Float8E5M2, inf, old, 0x7b},
		{ir.Float8E5M2FNUZ, -inf, raw, 0x80}, {ir.Float8E5M2FNUZ, nan, clamp, 0x80},
		{ir.Float8E8M0, nan, clamp, 0xff}, {ir.Float8E8M0, inf, clamp, 0xfe}, {ir.Float8E8M0, inf, raw, 0xff},
		{ir.Float8E8M0, 0, clamp, 0}, {ir.Float8E8M0, 0, raw, 0xff},
		{ir.Float8E8M0, 1.1, clamp, 128}, {ir.Float8E8M0, 1.1, Rounding{Mode: "down"}, 127},
		{ir.Float8E8M0, 1.5, Rounding{Mode: "nearest"}, 128}, {ir.Float8E8M0, 1.4, Rounding{Mode: "nearest"}, 127},
		{ir.Float4E2M1, inf, raw, 7}, {ir.Float4E2M1, -100, raw, 15},
	} {
		if got := encoded(c.dt, c.v, c.r); got != c.want {
			t.Errorf("%v to %s with %+v: %#x, want %#x", c.v, c.dt, c.r, got, c.want)
		}
	}
}

func TestPackingIsLowestBitsFirst(t *testing.T) {
	for _, c := range []struct {
		dt     ir.DType
		values []int8
		want   []byte
	}{
		{ir.Int4, []int8{1, -2, 7}, []byte{0xe1, 0x07}},
		{ir.Uint4, []int8{1, 15, 9}, []byte{0xf1, 0x09}},
		{ir.Int2, []int8{1, -2, -1, 0, 1}, []byte{0b00_11_10_01, 1}},
		{ir.Uint2, []int8{3, 0, 2}, []byte{0b10_00_11}},
	} {
		x, got, back := make([]byte, len(c.values)), make([]byte, len(c.want)), make([]byte, len(c.values))
		for i, v := range c.values {
			x[i] = byte(v)
		}
		if EncodeInts(got, x, c.dt); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", c.dt, got, c.want)
		}
		if DecodeInts(back, got, c.dt); !bytes.Equal(back, x) {
			t.Errorf("%s: read back %v, want %v", c.dt, back, x)
		}
	}
}

// Four 6-bit elements fill three bytes.
func TestSixBits(t *testing.T) {
	x := []float32{0.125, -7.5, 1, 2, 0.25}
	packed, back := make([]byte, 4), make([]float32, 5)
	EncodeFloats(packed, x, ir.Float6E2M3, Rounding{})
	DecodeFloats(back, packed, ir.Float6E2M3)
	for i := range x {
		if back[i] != x[i] {
			t.Errorf("element %d: %v, want %v", i, back[i], x[i])
		}
	}
}
