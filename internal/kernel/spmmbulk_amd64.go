//go:build amd64 && !noasm

package kernel

// bulk computes everything and reports true if the CPU has the instructions.
func (s *SparseRows) bulk(sums, x []float32, panel, cols int, add bool) bool {
	if !hasFMA {
		return false
	}
	var none float32
	values, index, panel, plus := &none, &s.index[0], 4*panel, asInt(add)
	if len(s.values) > 0 {
		values = &s.values[0]
	}
	switch {
	case cols == 1:
		spmvAVX2(&sums[0], index, s.quads, values, &x[0], plus)
	case cols <= 8:
		spmm1AVX2(&sums[0], index, s.quads, values, &x[0], panel, plus)
	case cols <= 16:
		spmm2AVX2(&sums[0], index, s.quads, values, &x[0], panel, plus)
	case cols <= 24:
		spmm3AVX2(&sums[0], index, s.quads, values, &x[0], panel, plus)
	default:
		spmm4AVX2(&sums[0], index, s.quads, values, &x[0], panel, plus)
	}
	return true
}
