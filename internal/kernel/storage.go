package kernel

// The forms in which activations are stored for the backward pass: bit masks, and blocks of 8-bit values.

// Between sets bit i of mask, least significant bit first, if x[i] is above lo and below hi, and clears the others.
// mask has one bit for each element, rounded up to bytes. A bound that is NaN does not limit; an x[i] that is NaN is
// within any bounds.
func Between(mask []byte, x []float32, lo, hi float32) {
	checkLen("mask", len(mask), (len(x)+7)/8)
	n := betweenBulk(mask, x, lo, hi)
	betweenGo(mask[n/8:], x[n:], lo, hi)
}

func betweenGo(mask []byte, x []float32, lo, hi float32) {
	clear(mask)
	for i, v := range x {
		if !(v <= lo) && !(v >= hi) {
			mask[i/8] |= 1 << (i % 8)
		}
	}
}

// ScaleMasked multiplies the elements of x whose bits in mask are set by on, and the others by off; the product with an
// off of 0 is +0, also for NaN. dst may be x.
func ScaleMasked(dst, x []float32, mask []byte, on, off float32) {
	checkLen("dst", len(dst), len(x))
	checkLen("mask", len(mask), (len(x)+7)/8)
	n := scaleMaskedBulk(dst, x, mask, on, off)
	scaleMaskedGo(dst[n:], x[n:], mask[n/8:], on, off)
}

func scaleMaskedGo(dst, x []float32, mask []byte, on, off float32) {
	for i, v := range x {
		switch {
		case mask[i/8]>>(i%8)&1 == 1:
			dst[i] = v * on
		case off != 0:
			dst[i] = v * off
		default:
			dst[i] = 0
		}
	}
}

// QuantizeStochastic writes (x[i]-lo)·inverse, which is at least 0, rounded up with a probability of its fraction and
// down otherwise, and at most 255. Element i uses the random number of the counter first+i, so that parts of a tensor
// can be quantized separately. NaN becomes 255.
func QuantizeStochastic(dst []byte, x []float32, lo, inverse float32, first uint32) {
	checkLen("dst", len(dst), len(x))
	n := quantizeStochasticBulk(dst, x, lo, inverse, first)
	quantizeStochasticGo(dst[n:], x[n:], lo, inverse, first+uint32(n))
}

func quantizeStochasticGo(dst []byte, x []float32, lo, inverse float32, first uint32) {
	for i, v := range x {
		u := float32(hash32(first+uint32(i))>>8) * 0x1p-24
		q := float32((v-lo)*inverse) + u
		if !(q < 255) {
			q = 255
		}
		dst[i] = byte(q)
	}
}

// hash32 is the integer hash lowbias32 (C. Wellons, Prospecting for Hash Functions, 2018).
func hash32(h uint32) uint32 {
	h = (h ^ h>>16) * 0x7feb352d
	h = (h ^ h>>15) * 0x846ca68b
	return h ^ h>>16
}
