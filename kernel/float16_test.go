package kernel

import (
	"math"
	"os"
	"testing"

	"github.com/x448/float16"
)

// exhaustiveEnv set to anything makes the conversions run on every float32, as CI does.
const exhaustiveEnv = "MCOMPRESS_EXHAUSTIVE"

// step between chunks of bit patterns: 1 means all of them.
func patternStep() int {
	if os.Getenv(exhaustiveEnv) != "" {
		return 1
	}
	return 61 // odd and prime, so that chunks meet every exponent and both signs
}

const patternChunk = 1 << 20

func fillPatterns(x []float32, from uint32) {
	for i := range x {
		x[i] = math.Float32frombits(from + uint32(i))
	}
}

func TestF16FromF32EqualsReference(t *testing.T) {
	x := make([]float32, patternChunk)
	got, twin := make([]uint16, len(x)), make([]uint16, len(x))
	for chunk := 0; chunk < 1<<32/patternChunk; chunk += patternStep() {
		fillPatterns(x, uint32(chunk*patternChunk))
		F16FromF32(got, x)
		f16FromF32Go(twin, x)
		for i, v := range x {
			want := float16.Fromfloat32(v).Bits()
			if got[i] != want || twin[i] != want {
				t.Fatalf("%#08x: got %#04x, twin %#04x, want %#04x", math.Float32bits(v), got[i], twin[i], want)
			}
		}
	}
}

func TestF32FromF16EqualsReference(t *testing.T) {
	x := make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	got, twin := make([]float32, len(x)), make([]float32, len(x))
	F32FromF16(got, x)
	f32FromF16Go(twin, x)
	for i, h := range x {
		want := math.Float32bits(float16.Frombits(h).Float32())
		if g, w := math.Float32bits(got[i]), math.Float32bits(twin[i]); g != want || w != want {
			t.Fatalf("%#04x: got %#08x, twin %#08x, want %#08x", h, g, w, want)
		}
	}
}
