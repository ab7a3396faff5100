package palette

import (
	"math"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Scales are stored as bytes: a sign and one of 127 magnitudes of equal ratios, of 15.75 octaves up to 1. Byte 0 is the scale 0. All weights
// of a model share the table.
const (
	scaleSign   = 0x80
	largest     = 0x7f
	stepsOctave = 8
)

// A scaler is the table of scales.
type scaler struct {
	half [256]uint16   // by their bytes, as they are stored
	of   [256]float32  // likewise
	near [1 << 15]byte // the byte of the nearest scale, by the upper bits of a positive float32
}

// scaleTable are powers of two to eighths.
var scaleTable = sync.OnceValue(func() *scaler {
	t := &scaler{}
	eighths := [stepsOctave]float64{1, 0.9170040432046712, 0.8408964152537145, 0.7711054127039704, 0.7071067811865476, 0.6484197773255048, 0.5946035575013605, 0.5452538663326288}
	for i := 1; i <= largest; i++ {
		down := largest - i
		t.of[i] = float32(math.Ldexp(eighths[down%stepsOctave], -(down / stepsOctave)))
		t.of[i|scaleSign] = -t.of[i]
	}
	kernel.F16FromF32(t.half[:], t.of[:])
	kernel.F32FromF16(t.of[:], t.half[:])
	at := 0
	for key := range t.near {
		v := math.Float32frombits(uint32(key)<<16 | 1<<15)
		for at < largest && v > (t.of[at]+t.of[at+1])/2 {
			at++
		}
		t.near[key] = byte(at)
	}
	return t
})

// round is the byte of the scale that is nearest to s.
func (r *scaler) round(s float32) byte {
	bits := math.Float32bits(s)
	if near := r.near[bits>>16&0x7fff]; near > 0 {
		return near | byte(bits>>31)<<7
	}
	return 0
}

// cover is the byte of a scale that is at least as large as s, so that the largest element of a block is not clipped.
func (r *scaler) cover(s float32) byte {
	b := r.round(s)
	if b > 0 && b&largest < largest && max(r.of[b], -r.of[b]) < max(s, -s) {
		b++
	}
	return b
}
