//go:build amd64 && !noasm

package kernel

// bulk computes everything and reports true if the CPU has the instructions.
func (q sparseQuads) bulk(sums, x []float32, panel, cols int, add bool) bool {
	if !hasFMA {
		return false
	}
	values, index, panel, plus := q.first(), &q.index[0], 4*panel, asInt(add)
	// 32 columns are two rows by four vectors of sums in AVX2, and all four rows of a quad in AVX-512. Tiles of 24
	// columns took 10 % longer, those of 16 a half.
	switch vectors := (cols + 7) / 8; {
	case cols == 1:
		// One column has the four rows of a quad as lanes: the four column bytes are one load, and two quads alternate,
		// as a sum has a latency of four cycles. 0.27 instead of 0.33 ns per element.
		spmvAVX2(&sums[0], index, q.quads, values, &x[0], plus)
	case vectors == 1:
		spmm1AVX2(&sums[0], index, q.quads, values, &x[0], panel, plus)
	case vectors == 2 && hasAVX512:
		spmm2AVX512(&sums[0], index, q.quads, values, &x[0], panel, plus)
	case vectors == 2:
		spmm2AVX2(&sums[0], index, q.quads, values, &x[0], panel, plus)
	case vectors == 3 && hasAVX512:
		spmm3AVX512(&sums[0], index, q.quads, values, &x[0], panel, plus)
	case vectors == 3:
		spmm3AVX2(&sums[0], index, q.quads, values, &x[0], panel, plus)
	case hasAVX512:
		spmm4AVX512(&sums[0], index, q.quads, values, &x[0], panel, plus)
	default:
		spmm4AVX2(&sums[0], index, q.quads, values, &x[0], panel, plus)
	}
	return true
}

// bulkAt is bulk for rows of x at offsets.
func (q sparseQuads) bulkAt(sums, x []float32, at []int32, cols int, add bool) bool {
	if !hasFMA {
		return false
	}
	var multiply func(sums *float32, index *byte, quads int, values, x *float32, offsets *int32, add int)
	// Up to 112 columns instead of 64, as an index and a value are loaded for more of them: 0.85 to 0.94 of the time of
	// 3×3 layers of 64 to 256 channels at 80 % zeros.
	if hasAVX512 {
		multiply = [...]func(sums *float32, index *byte, quads int, values, x *float32, offsets *int32, add int){
			spmmAt1AVX2, spmmAt2AVX512, spmmAt3AVX512, spmmAt4AVX512, spmmAt5AVX512, spmmAt6AVX512, spmmAt7AVX512,
			spmmAt8AVX512,
			spmmAt9AVX512, spmmAt10AVX512, spmmAt11AVX512, spmmAt12AVX512, spmmAt13AVX512, spmmAt14AVX512,
		}[cols/8-1]
	} else {
		multiply = [...]func(sums *float32, index *byte, quads int, values, x *float32, offsets *int32, add int){
			spmmAt1AVX2, spmmAt2AVX2, spmmAt3AVX2, spmmAt4AVX2, spmmAt5AVX2, spmmAt6AVX2, spmmAt7AVX2, spmmAt8AVX2,
		}[cols/8-1]
	}
	multiply(&sums[0], &q.index[0], q.quads, q.first(), &x[0], &at[0], asInt(add))
	return true
}

func sparseWide() int {
	if hasAVX512 {
		return maxSparseWide
	}
	return 64
}

// first is the first value, or a zero if there are none.
func (q sparseQuads) first() *float32 {
	if len(q.values) == 0 {
		return new(float32)
	}
	return &q.values[0]
}

// decodeBulk decodes all values of q and reports true if the CPU has the instructions.
func (q sparseQuads) decodeBulk(stored []byte, t SparseType, scales []float32) bool {
	switch {
	case len(q.values) == 0:
		return true
	case t == SparseInt8 && hasAVX2:
		sparseInt8AVX2(&q.values[0], &stored[0], &q.index[0], q.quads, &scales[0])
	case t == SparseHalf && hasF16C:
		sparseHalfAVX2(&q.values[0], &stored[0], &q.index[0], q.quads, &scales[0])
	default:
		return false
	}
	return true
}

// int32FromFloatBulk converts whole vectors and returns the number of elements.
func int32FromFloatBulk(dst []int32, x []float32) int {
	n := len(x) &^ 7
	if !hasAVX2 || n == 0 {
		return 0
	}
	int32FromFloatAVX2(&dst[0], &x[0], n)
	return n
}
