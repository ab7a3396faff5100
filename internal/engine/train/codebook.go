package train

import (
	"math"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A codebook is 256 numbers of at most 1 in rising order that lie closer together towards zero: dynamic tree
// quantization (Dettmers et al. 2022, section 1.3). A code is a number of zero bits, which is the power of ten, then
// a one, then a linear fraction; 0 and 1 are the two codes left over.
type codebook struct {
	values [256]float32
	zero   int             // the code of 0
	start  [binCount]uint8 // the code of the least magnitude in a bin
	bounds [256]uint32     // bits of what lies halfway between the numbers of a code and of the next
}

// Bins are float32 magnitudes by exponent and the first bits of the fraction, from least up to 1: narrower than
// the distance of codes, so that the first code of a bin is off by one at most.
const (
	binShift = 23 - 7
	leastBin = (127 - 24) << 7 // 2^-24 is below half of the least code
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

// unsignedBook does not take what is above 0 for 0: a root of it is divided by.
var unsignedBook = sync.OnceValue(func() *codebook {
	b := newCodebook(append(decades(7), 0, 1))
	b.bounds[b.zero] = 0
	return b
})

// decades are the numbers above 0 with that many bits of fraction in the first decade below 1, and one bit less
// in each of six more: the middles of equal parts of [0.1, 1], times the power of ten.
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
		for least := uint32(leastBin+i) << binShift; i > 0 && least > b.bounds[code]; {
			code++
		}
		b.start[i] = uint8(code)
	}
	return b
}

func (b *codebook) decode(dst []float32, codes []byte, scale float32) {
	for i, c := range codes {
		dst[i] = b.values[c] * scale
	}
}

// encode writes the codes nearest to x/scale, with which it overwrites x.
func (b *codebook) encode(codes []byte, x []float32, scale float32) {
	if scale > 0 {
		kernel.DivScalar(x, x, scale)
	}
	codes = codes[:len(x)]
	for i, v := range x {
		codes[i] = b.code(v)
	}
}

// code is the code nearest to x, which lies in [-1, 1]. Magnitudes order as their bits do, and there
// are no branches, which signs and roundings would make the processor guess wrong half of the time.
func (b *codebook) code(x float32) byte {
	bits := math.Float32bits(x)
	size, sign := bits&math.MaxInt32, int(bits>>31)
	k := int(b.start[min(max(int(size>>binShift)-leastBin, 0), binCount-1)])
	k += int(uint64(int64(b.bounds[k])-int64(size)) >> 63)
	above := k - b.zero
	above -= sign & (above >> 7) // there is no -1
	return byte(b.zero + (above ^ -sign) + sign)
}
