package spmm

import (
	"unsafe"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A Density is the cost model of a product: the fraction of nonzero elements up to which a weight of enough elements is
// multiplied as sparse. The number of columns is not known when a model is loaded, and only one form of a weight is
// held.
//
// Speed-up over the packed dense product by density and number of columns M, one core of an AMD EPYC with AVX2, busy:
// BenchmarkRight of floats, and of int8 values with float activations, and BenchmarkSparseProduct of package quant with
// 8-bit activations. BenchmarkSparseConv of package conv has that of convolutions.
//
//	K×N               density  M=1   2    4    8    32   128
//	768×768, float    0.05     3.6  1.7  2.6  4.6  7.5  5.6
//	                  0.1      2.0  1.1  1.6  2.9  4.8  5.3
//	                  0.2      1.1  0.6  0.8  2.2  2.7  3.2
//	                  0.3      0.7  0.4  0.7  1.2  1.7  2.0
//	4096×4096, float  0.1      5.4  4.3  5.2  11   11   4.8
//	                  0.2      1.3  1.9  4.6  3.4  2.4  2.2
//	                  0.3      0.9  1.4  1.8  2.1  2.3  1.6
//	768×768, int8     0.1      1.5  1.5  2.1  2.7  3.3  4.7
//	                  0.2      1.1  0.9  0.9  1.5  2.1  2.1
//	768×768, integer  0.05     0.8  0.7  1.1  1.9  2.7  2.8
//	                  0.1      0.5  0.5  0.7  1.3  1.7  1.7
//
// One row of a weight in the L3 cache is as fast as dense at 0.21, eight and more rows at 0.35 to 0.5. With 8-bit
// activations the dense product reads a quarter of the bytes; less memory decided for sparse there, from 90 % zeros on.
type Density struct {
	fraction float64
	elems    int // of the smallest weight that was measured
}

// The products of floats, where one column of a weight in the L3 cache is not slower than that of the dense weight; of
// floats with 8-bit values; of 8-bit values, where eight columns are not; and of convolutions whose kernel has several
// elements.
var (
	FloatDensity     = Density{0.205, 1 << 14}
	QuantizedDensity = Density{0.205, 1 << 14}
	IntDensity       = Density{0.105, 1 << 14}
	ConvDensity      = Density{0.205, 1 << 11}
)

// Eligible reports whether a weight of this many elements may be multiplied as sparse, if it has enough zeros.
func (d Density) Eligible(elems int) bool { return elems >= d.elems }

// Worthwhile reports whether a weight of this many elements, of which some are not zero, is multiplied faster as
// sparse.
func (d Density) Worthwhile(elems, nonzeros int) bool {
	return d.Eligible(elems) && float64(nonzeros) <= d.fraction*float64(elems)
}

// IsSparse reports whether a dense weight has enough zeros.
func IsSparse[T float32 | uint16](d Density, x []T) bool {
	return d.Counts(len(x), int(unsafe.Sizeof(x[0])),
		func(_ []byte, from, to int) []byte { return kernel.Bytes(x[from:to]) })
}

// Counts is IsSparse of elements of size bytes, which block returns in parts, or writes to buf. It reads no more of a
// weight than it needs to see that it has not enough zeros.
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
