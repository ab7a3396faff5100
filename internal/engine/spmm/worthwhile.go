package spmm

import "github.com/mcompress/mcompress/internal/kernel"

// The cost model; docs/decisions/kernels.md has its measurements, of BenchmarkRight. The number of columns is not known when a model is
// loaded: this is the density up to which one column of a weight in the L3 cache is not slower than that of the dense weight. Smaller weights
// were not measured.
const (
	maxDensity = 0.205
	minElems   = 1 << 14
)

// Eligible reports whether a weight of this many elements may be multiplied as sparse, if it has enough zeros.
func Eligible(elems int) bool { return elems >= minElems }

// Worthwhile reports whether a weight of this many elements, of which some are not zero, is multiplied faster as sparse.
func Worthwhile(elems, nonzeros int) bool {
	return Eligible(elems) && float64(nonzeros) <= maxDensity*float64(elems)
}

// IsSparse reports whether a dense weight has enough zeros. It reads no more of a weight than it needs to see that it has not.
func IsSparse(x []float32) bool {
	const block = 1 << 12
	var mask [block / 8]byte
	count := 0
	for from := 0; from < len(x) && Worthwhile(len(x), count); from += block {
		b := x[from:min(from+block, len(x))]
		count += kernel.NonZero(mask[:(len(b)+7)/8], kernel.Bytes(b), 4)
	}
	return Worthwhile(len(x), count)
}
