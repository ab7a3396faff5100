package train

import (
	"math"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A codebook is 256 ascending numbers of magnitude at most 1 that are denser near zero: dynamic tree quantization
// (Dettmers et al. 2022, section 1.3). A value is a number of zero bits, which is the decimal exponent, then a one,
// then a linear fraction; 0 and 1 are the two remaining values.
type codebook struct {
	values [256]float32
	zero   int             // index of 0
	start  [binCount]uint8 // index of the smallest magnitude in a bin
	bounds [256]uint32     // bits of the midpoints between neighbours
}

// Bins are float32 magnitudes by exponent and leading fraction bits, up to 1: narrower than the distance of numbers, so
// that the index from a bin is off by one at most.
const (
	binShift = 23 - 7
	firstBin = (127 - 24) << 7 // 2^-24 is below half of the smallest number
	binCount = 24<<7 + 1
)

var signedBook = sync.OnceValue(func() *codebook {
	above := decades(6)
	var values []float64
	for _, v := range above {
		values = append(values, -v)
	}
	return newCodebook(append(append(values, above...), 0, 1))
})

// unsignedBook does not round positive numbers to 0: Adam divides by their square root.
var unsignedBook = sync.OnceValue(func() *codebook {
	b := newCodebook(append(decades(7), 0, 1))
	b.bounds[b.zero] = 0
	return b
})

// decades returns the positive numbers with that many fraction bits in the first decade below 1, and one bit less in
// each of six more: the midpoints of equal parts of [0.1, 1], times the power of ten.
func decades(bits int) []float64 {
	var out []float64
	for e := range 7 {
		parts := 1 << (bits - e)
		for i := range parts {
			out = append(out, math.Pow(10, float64(-e))*(0.1+0.9*(float64(i)+0.5)/float64(parts)))
		}
	}
	return out
}

func newCodebook(values []float64) *codebook {
	slices.Sort(values)
	b := &codebook{zero: slices.Index(values, 0)}
	for i, v := range values {
		b.values[i] = float32(v)
	}
	for i := range 255 {
		b.bounds[i] = math.Float32bits(float32((values[i] + values[i+1]) / 2))
	}
	b.bounds[255] = math.MaxUint32
	code := b.zero
	for i := range b.start {
		for least := uint32(firstBin+i) << binShift; i > 0 && least > b.bounds[code]; {
			code++
		}
		b.start[i] = uint8(code)
	}
	return b
}

func (b *codebook) decode(dst []float32, values []byte, scale float32) {
	for i, c := range values {
		dst[i] = b.values[c] * scale
	}
}

// encode writes the indices of the numbers nearest to x/scale. It overwrites x with x/scale.
func (b *codebook) encode(values []byte, x []float32, scale float32) {
	if scale > 0 {
		kernel.DivScalar(x, x, scale)
	}
	values = values[:len(x)]
	for i, v := range x {
		values[i] = b.index(v)
	}
}

// index returns the index of the number nearest to x in [-1, 1]. Magnitudes are ordered as their bits are; branches on
// signs and rounding would be mispredicted half of the time.
func (b *codebook) index(x float32) byte {
	bits := math.Float32bits(x)
	size, sign := bits&math.MaxInt32, int(bits>>31)
	k := int(b.start[min(max(int(size>>binShift)-firstBin, 0), binCount-1)])
	// 1 if the magnitude is above the midpoint between numbers k and k+1.
	k += int(uint64(int64(b.bounds[k])-int64(size)) >> 63)
	above := k - b.zero
	above -= sign & (above >> 7) // -1 is not in the codebook
	// Negated in two's complement if sign is 1.
	return byte(b.zero + (above ^ -sign) + sign)
}
