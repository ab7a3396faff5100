package palette

import (
	"math"
	"math/bits"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Scales are stored as bytes: a sign and one of 127 magnitudes of equal ratios, of 15.75 octaves up to 1. Byte 0 is the
// scale 0. All weights of a model share the table.
const (
	scaleSign   = 0x80
	largest     = 0x7f
	stepsOctave = 8
)

// A scaler is the table of scales.
type scaler struct {
	half      [256]uint16         // by their bytes, as they are stored
	of, under [256]float32        // likewise, and their inverses, 0 for 0
	limits    [stepsOctave]uint32 // between the scales of an octave, as mantissas
}

// scaleTable are powers of two to eighths.
var scaleTable = sync.OnceValue(func() *scaler {
	t := &scaler{}
	eighths := [stepsOctave]float64{1, 0.9170040432046712, 0.8408964152537145, 0.7711054127039704, 0.7071067811865476,
		0.6484197773255048, 0.5946035575013605, 0.5452538663326288}
	for i := 1; i <= largest; i++ {
		down := largest - i
		t.of[i] = float32(math.Ldexp(eighths[down%stepsOctave], -(down / stepsOctave)))
		t.of[i|scaleSign] = -t.of[i]
	}
	// Rounded to float16, as runtimes read them from the file.
	kernel.F16FromF32(t.half[:], t.of[:])
	kernel.F32FromF16(t.of[:], t.half[:])
	for i, s := range t.of {
		if s != 0 {
			t.under[i] = 1 / s
		}
	}
	for i := range t.limits {
		first := largest - stepsOctave + i
		t.limits[i] = math.Float32bits(t.of[first]+t.of[first+1]) & (1<<23 - 1)
	}
	return t
})

// magnitudes writes the bytes of the scales that are nearest to the largest magnitudes of blocks of x.
func (r *scaler) magnitudes(dst []byte, x []float32, block int) {
	kernel.BlockMagnitudes(dst, x, block, &r.limits)
}

// search replaces magnitudes, those of the largest elements of blocks of v, by the scales of least squared error with
// the entries of c, among the nearest ones and of both signs. A scale of the other sign often fits better, as entries
// are not symmetric.
func (r *scaler) search(magnitudes []byte, v values, block int, c *codebook) {
	if c.kernel != nil && v.important == nil {
		c.kernel.SearchScale(magnitudes, v.x, block)
		return
	}
	for b, m := range magnitudes {
		least, part := float32(math.Inf(1)), v.part(int64(b*block), int64((b+1)*block))
		// Around the scale of the largest element only: those far from it clip it, or leave most entries unused.
		for i := max(1, m-kernel.StepsDown); m > 0 && i <= min(largest, m+kernel.StepsUp); i++ {
			for _, s := range [2]byte{i, i | scaleSign} {
				if e := c.errorOf(part, r.of[s], r.under[s]); e < least {
					least, magnitudes[b] = e, s
				}
			}
		}
	}
}

// peak is the element of the largest magnitude, the negative one of equal ones.
func peak(b []float32) float32 {
	most := uint32(0) // with the sign as the lowest bit
	for _, v := range b {
		most = max(most, bits.RotateLeft32(math.Float32bits(v), 1))
	}
	return math.Float32frombits(bits.RotateLeft32(most, -1))
}
