package spmm

import (
	"unsafe"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A Density is the cost model of a product: the fraction of nonzero elements up to which a weight of enough elements is multiplied as sparse.
// The number of columns is not known when a model is loaded. docs/decisions/kernels.md has the measurements, of BenchmarkRight,
// BenchmarkSparseProduct and BenchmarkSparseConv.
type Density struct {
	fraction float64
	elems    int // of the smallest weight that was measured
}

// The products of floats, where one column of a weight in the L3 cache is not slower than that of the dense weight; of floats with 8-bit
// values; of 8-bit values, where eight columns are not; and of convolutions whose kernel has several elements.
var (
	FloatDensity     = Density{0.205, 1 << 14}
	QuantizedDensity = Density{0.205, 1 << 14}
	IntDensity       = Density{0.105, 1 << 14}
	ConvDensity      = Density{0.205, 1 << 11}
)

// Eligible reports whether a weight of this many elements may be multiplied as sparse, if it has enough zeros.
func (d Density) Eligible(elems int) bool { return elems >= d.elems }

// Worthwhile reports whether a weight of this many elements, of which some are not zero, is multiplied faster as sparse.
func (d Density) Worthwhile(elems, nonzeros int) bool {
	return d.Eligible(elems) && float64(nonzeros) <= d.fraction*float64(elems)
}

// IsSparse reports whether a dense weight has enough zeros.
func IsSparse[T float32 | uint16](d Density, x []T) bool {
	return d.Counts(len(x), int(unsafe.Sizeof(x[0])), func(_ []byte, from, to int) []byte { return kernel.Bytes(x[from:to]) })
}

// Counts is IsSparse of elements of size bytes, which block returns in parts, or writes to buf. It reads no more of a weight than it needs
// to see that it has not enough zeros.
func (d Density) Counts(elems, size int, block func(buf []byte, from, to int) []byte) bool {
	const step = 1 << 12
	var mask [step / 8]byte
	var buf [step]byte
	count := 0
	// Ends as soon as there are too many: most weights are dense, and all of them are counted.
	for from := 0; from < elems && d.Worthwhile(elems, count); from += step {
		b := block(buf[:], from, min(from+step, elems))
		count += kernel.NonZero(mask[:(len(b)/size+7)/8], b, size)
	}
	return d.Worthwhile(elems, count)
}
