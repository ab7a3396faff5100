package kernel

import "math"

// zeroBlock is the number of elements that ZeroBelow processes at once; they stay in the L1 cache between counting ties
// and zeroing.
const zeroBlock = 2048

// ZeroBelow sets to +0 the elements of x whose magnitude bits (see AbsMaxBits) are below limit, and the first ties of
// those equal to limit, by index. It returns the number of ties left for the following elements.
func ZeroBelow(x []float32, limit uint32, ties int) (tiesLeft int) {
	if limit > magnitude {
		clear(x)
		return ties
	}
	for len(x) > 0 {
		n := min(len(x), zeroBlock)
		ties = zeroBlockBelow(x[:n], limit, ties)
		x = x[n:]
	}
	return ties
}

// zeroBlockBelow processes a block in which all or none of the ties are zeroed in bulk, so at most one block of a
// tensor uses the plain loop.
func zeroBlockBelow(x []float32, limit uint32, ties int) (tiesLeft int) {
	if ties > 0 {
		equal := countMagnitude(x, limit)
		if equal > ties {
			return zeroTiesGo(x, limit, ties)
		}
		zeroUpTo(x, limit)
		return ties - equal
	}
	if limit > 0 {
		zeroUpTo(x, limit-1)
	}
	return ties
}

// zeroUpTo zeroes elements of magnitude limit or below.
func zeroUpTo(x []float32, limit uint32) {
	n := zeroUpToBulk(x, limit)
	zeroUpToGo(x[n:], limit)
}

// countMagnitude counts elements of magnitude b.
func countMagnitude(x []float32, b uint32) int {
	n, count := countMagnitudeBulk(x, b)
	return count + countMagnitudeGo(x[n:], b)
}

func zeroUpToGo(x []float32, limit uint32) {
	for i, v := range x {
		if math.Float32bits(v)&magnitude <= limit {
			x[i] = 0
		}
	}
}

func countMagnitudeGo(x []float32, b uint32) int {
	count := 0
	for _, v := range x {
		if math.Float32bits(v)&magnitude == b {
			count++
		}
	}
	return count
}

func zeroTiesGo(x []float32, limit uint32, ties int) (tiesLeft int) {
	for i, v := range x {
		b := math.Float32bits(v) & magnitude
		if b > limit || b == limit && ties == 0 {
			continue
		}
		if b == limit {
			ties--
		}
		x[i] = 0
	}
	return ties
}
