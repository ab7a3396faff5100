package spmm

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Source lists the nonzero elements of some rows of a matrix. Pack calls it concurrently.
type Source func(from, to int) *Rows

// Rows are the nonzero elements of some rows of a matrix, row by row, in the order of columns: compressed sparse rows (CSR).
type Rows struct {
	ends   []int // of each row
	cols   []int32
	values []float32
}

// Dense is a matrix of k columns. Either its rows or its columns must be contiguous.
func Dense(m gemm.Matrix[float32], k int) Source {
	return func(from, to int) *Rows {
		lines, stride, first, n := to-from, m.Row, from*m.Row, k // contiguous elements, their distance, start and length
		if m.Col != 1 {
			lines, stride, first, n = k, m.Col, from*m.Row, to-from
		}
		found, ends := make([]int32, 0, lines*n/4), make([]int, lines) // more than Worthwhile accepts, on average
		for i := range lines {
			found = nonzeros(found, m.Data[first+i*stride:][:n])
			ends[i] = len(found)
		}
		return list(to-from, func(add func(row, col int, v float32)) {
			at := 0
			for i, end := range ends {
				line := m.Data[first+i*stride:][:n]
				for _, j := range found[at:end] {
					if m.Col == 1 {
						add(i, int(j), line[j])
					} else {
						add(int(j), i, line[j])
					}
				}
				at = end
			}
		})
	}
}

// At is a matrix of k columns whose element (i, j) is at position i·row+j·col of a tensor, with elements at ascending positions. Either row
// or col must be 1.
func At(positions []int32, values []float32, row, col, k int) Source {
	return func(from, to int) *Rows {
		lines, stride, first, n := to-from, row, from*row, k // runs of positions, their distance, start and length
		if col != 1 {
			lines, stride, first, n = k, col, from, to-from
		}
		return list(to-from, func(add func(row, col int, v float32)) {
			for i := range lines {
				start := first + i*stride
				at, _ := slices.BinarySearch(positions, int32(start))
				for ; at < len(positions) && int(positions[at]) < start+n; at++ {
					if j := int(positions[at]) - start; col == 1 {
						add(i, j, values[at])
					} else {
						add(j, i, values[at])
					}
				}
			}
		})
	}
}

// list calls each twice, to count and to copy the elements that it adds. Those of a row must be added in the order of columns.
func list(rows int, each func(add func(row, col int, v float32))) *Rows {
	r := &Rows{ends: make([]int, rows)}
	each(func(row, _ int, _ float32) { r.ends[row]++ })
	total := 0
	for i, n := range r.ends {
		r.ends[i] = total // its start, until its elements are copied
		total += n
	}
	r.cols, r.values = make([]int32, total), make([]float32, total)
	each(func(row, col int, v float32) {
		r.cols[r.ends[row]], r.values[r.ends[row]] = int32(col), v
		r.ends[row]++
	})
	return r
}

// of is the elements of a row.
func (r *Rows) of(row int) (cols []int32, values []float32) {
	from := 0
	if row > 0 {
		from = r.ends[row-1]
	}
	return r.cols[from:r.ends[row]], r.values[from:r.ends[row]]
}

// nonzeros appends to dst the indices of the nonzero elements of x, in order.
func nonzeros(dst []int32, x []float32) []int32 {
	const at = 512
	var mask [at / 8]byte
	for from := 0; from < len(x); from += at {
		n := min(at, len(x)-from)
		clear(mask[:])
		kernel.NonZero(mask[:(n+7)/8], kernel.Bytes(x[from:from+n]), 4)
		for i := 0; i < n; i += 64 {
			for w := binary.LittleEndian.Uint64(mask[i/8:]); w != 0; w &= w - 1 {
				dst = append(dst, int32(from+i+bits.TrailingZeros64(w)))
			}
		}
	}
	return dst
}
