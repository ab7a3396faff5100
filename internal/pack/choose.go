package pack

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// Bytes that a codec is chosen on: all of a small tensor, a part of a larger one in pieces from all over it. Samples of
// integers are as long as a block, so that tables cost as much as in the result; for floats they are small next to what
// exponents save.
const (
	minSample = 32 << 10
	maxSample = 128 << 10
	pieces    = 4
)

// samplePieces are the offsets and the size of the pieces of a tensor of n bytes that are its sample.
func samplePieces(t ir.DType, n int64) (offsets []int64, size int64) {
	total := int64(maxSample)
	if t.IsFloat() {
		total = min(max(n/32, minSample), maxSample)
	}
	if n <= total {
		return []int64{0}, n
	}
	size = total / pieces &^ 15 // whole elements
	for i := range int64(pieces) {
		offsets = append(offsets, (n-size)*i/(pieces-1)&^15)
	}
	return offsets, size
}

// choose returns the codec whose result for the sample is smallest. Base is the same part of the base, or nil.
func (c *chunker) choose(t ir.DType, sample, base []byte) codec {
	c.base = base
	best, least := codec{form: plain}, math.MaxInt
	for _, f := range forms(t, base != nil) {
		if f.valid(len(sample)) != nil {
			continue
		}
		k, size := c.try(f, sample, t.IsFloat())
		if size < least {
			best, least = k, size
		}
		// The planes of the mantissa are stored as they are then.
		if f.layout == rotatedPlanes && k.coders[0] == stored {
			break // mantissas are noise: other forms save no more
		}
	}
	return best
}

// try chooses the coders of the planes of sample in form f, and returns the size of the result.
func (c *chunker) try(f form, sample []byte, float bool) (codec, int) {
	k, total := codec{form: f}, 0
	all := c.symbolsOf(f, sample)
	count, each := f.symbols(len(sample))
	// FSE decodes much slower than Huffman codes: 0.05 % of the size does not decide for integers, 0.8 % for
	// floats, but in small containers, where time does not matter.
	worth := len(sample) / 2048 // bytes that a slower coder has to save
	if float && !c.small {
		worth = len(sample) / 128
	}
	for i := range count {
		var size int
		k.coders[i], size = c.coderOf(all[i*each:(i+1)*each], worth, f.layout == rotatedPlanes)
		total += size
	}
	return k, total
}

// coderOf returns the coder for a plane, the fastest within worth bytes of the smallest result, and the size of its
// result.
func (c *chunker) coderOf(plane []byte, worth int, float bool) (coder, int) {
	best, least := stored, len(plane)
	if float && random(plane) {
		return best, least
	}
	for _, k := range []coder{huffman, match, ans, mix} { // by the time of decoding
		if k == mix && !c.small {
			break
		}
		// In the order of decoding time, each has to save that many bytes over all faster ones.
		if _, out := c.code(k, plane); len(out)+worth < least {
			best, least = k, len(out)
		}
	}
	return best, least
}

// random reports whether an order-0 code saves less than 1 % of the plane of a float. The entropy of few values is too
// small by half a nat for each symbol but one (Miller, Note on the bias of information estimates, 1955).
func random(plane []byte) bool {
	var count [256]int
	for _, b := range plane {
		count[b]++
	}
	bits, used := 0.0, 0
	for _, n := range count {
		if n > 0 {
			bits -= float64(n) * math.Log2(float64(n)/float64(len(plane)))
			used++
		}
	}
	return bits+float64(used-1)/2*math.Log2E > 7.92*float64(len(plane))
}
