package spmm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Source lists the nonzero elements of some rows of a matrix. Pack calls it concurrently.
type Source func(from, to int) *Rows

// Rows are the nonzero elements of some rows of a matrix, row by row, in the order of columns: compressed sparse rows
// (CSR).
type Rows struct {
	ends   []int // of each row
	cols   []int32
	values []float32
}

// Dense is a matrix of k columns. Either its rows or its columns must be contiguous.
func Dense(m gemm.Matrix[float32], k int) Source {
	return elements[float32]{
		nonzeros: func(dst []int32, line []float32, _, _ int) []int32 { return NonZeros(dst, kernel.Bytes(line), 4) },
		value:    func(v float32, _ int) float32 { return v },
	}.source(m, k)
}

// Halves is Dense of float16.
func Halves(m gemm.Matrix[uint16], k int) Source {
	return elements[uint16]{
		nonzeros: func(dst []int32, line []uint16, _, _ int) []int32 { return NonZeros(dst, kernel.Bytes(line), 2) },
		value: func(v uint16, _ int) float32 {
			var wide [1]float32
			kernel.F32FromF16(wide[:], []uint16{v})
			return wide[0]
		},
	}.source(m, k)
}

// differences is Dense of int8 or uint8 minus the zero point of their row.
func differences(m gemm.Matrix[byte], k int, signed bool, zeros []int32) Source {
	return elements[byte]{
		nonzeros: func(dst []int32, line []byte, row, step int) []int32 {
			nonzeros := make([]byte, len(line)) // zero where the difference is
			for i, b := range line {
				nonzeros[i] = b ^ byte(zeros[row+i*step])
			}
			return NonZeros(dst, nonzeros, 1)
		},
		value: func(b byte, row int) float32 { return float32(integer(b, signed) - zeros[row]) },
	}.source(m, k)
}

func integer(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

// elements are functions for elements of type T.
type elements[T any] struct {
	// appends the places of those in a line of rows row, row+step ...
	nonzeros func(dst []int32, line []T, row, step int) []int32
	value    func(v T, row int) float32
}

func (e elements[T]) source(m gemm.Matrix[T], k int) Source {
	return func(from, to int) *Rows {
		// contiguous elements, their distance, start and length
		lines, stride, first, n, step := to-from, m.Row, from*m.Row, k, 0
		if m.Col != 1 {
			lines, stride, n, step = k, m.Col, to-from, 1
		}
		const spare = 4 // a density of one quarter is more than Worthwhile accepts, on average
		r := &Rows{ends: make([]int, lines), cols: make([]int32, 0, lines*n/spare),
			values: make([]float32, 0, lines*n/spare)}
		for i := range lines {
			line, row := m.Data[first+i*stride:][:n], from
			if step == 0 {
				row += i
			}
			found := len(r.cols)
			r.cols = e.nonzeros(r.cols, line, row, step)
			for _, j := range r.cols[found:] {
				r.values = append(r.values, e.value(line[j], row+step*int(j)))
			}
			r.ends[i] = len(r.cols)
		}
		if step == 0 {
			return r
		}
		return r.transposed(to - from)
	}
}

// At is a matrix of k columns whose element (i, j) is at position i·row+j·col of a tensor, with elements at ascending
// positions. Either row or col must be 1.
func At(positions []int32, values []float32, row, col, k int) Source {
	stride := col
	if col == 1 {
		stride = max(row, k) // of a single row, row may be 1
	}
	starts := startsOf(positions, stride)
	return func(from, to int) *Rows {
		first, lines, at, n := from, to-from, 0, k // lines of stride positions, and the part of each of them
		if col != 1 {
			first, lines, at, n = 0, k, from, to-from
		}
		r := &Rows{ends: make([]int, lines)}
		parts, count := make([][2]int, lines), 0
		for i := range min(lines, len(starts)-1-first) {
			begin, end := starts[first+i], starts[first+i+1]
			// The positions of a line that are between the part's columns: ascending, so that bisection finds both ends.
			line, start := positions[begin:end], int32((first+i)*stride+at)
			lo, _ := slices.BinarySearch(line, start)
			hi, _ := slices.BinarySearch(line[lo:], start+int32(n))
			parts[i] = [2]int{begin + lo, begin + lo + hi}
			count += hi
		}
		r.cols, r.values = make([]int32, 0, count), make([]float32, 0, count)
		for i, part := range parts {
			start := int32((first+i)*stride + at)
			for _, p := range positions[part[0]:part[1]] {
				r.cols = append(r.cols, p-start)
			}
			r.values = append(r.values, values[part[0]:part[1]]...)
			r.ends[i] = len(r.cols)
		}
		if col == 1 {
			return r
		}
		return r.transposed(to - from)
	}
}

// startsOf is where lines of stride positions start in ascending positions, up to the last line that has any, and their
// number.
func startsOf(positions []int32, stride int) []int {
	starts, next := []int{0}, stride
	for i, p := range positions {
		for ; int(p) >= next; next += stride {
			starts = append(starts, i)
		}
	}
	return append(starts, len(positions))
}

// transposed is the transposed matrix, of this number of rows.
func (r *Rows) transposed(rows int) *Rows {
	t := &Rows{ends: make([]int, rows), cols: make([]int32, len(r.cols)), values: make([]float32, len(r.cols))}
	for _, j := range r.cols {
		t.ends[j]++
	}
	// Counting sort by column: rows are read in order, so that the elements of each new row stay in order.
	total := 0
	for i, n := range t.ends {
		t.ends[i] = total // its start, until its elements are copied
		total += n
	}
	for i := range r.ends {
		cols, values := r.of(i)
		for e, j := range cols {
			to := t.ends[j]
			t.cols[to], t.values[to] = int32(i), values[e]
			t.ends[j] = to + 1
		}
	}
	return t
}

// magnitude is the largest sum of the values of one sign of a row.
func (r *Rows) magnitude() (largest float64) {
	for i := range r.ends {
		all, sum := 0.0, 0.0 // of magnitudes, and of values
		_, values := r.of(i)
		for _, v := range values {
			all += math.Abs(float64(v))
			sum += float64(v)
		}
		// The positive values sum to (all + sum)/2, the negative ones to (all - sum)/2 in magnitude.
		largest = max(largest, (all+math.Abs(sum))/2)
	}
	return largest
}

// of is the elements of a row.
func (r *Rows) of(row int) (cols []int32, values []float32) {
	from := 0
	if row > 0 {
		from = r.ends[row-1]
	}
	return r.cols[from:r.ends[row]], r.values[from:r.ends[row]]
}

// NonZeros appends to dst the indices of the nonzero elements of x, which have size bytes, in order.
func NonZeros(dst []int32, x []byte, size int) []int32 {
	const at = 512
	var mask [at / 8]byte
	for from := 0; from < len(x)/size; from += at {
		n := min(at, len(x)/size-from)
		clear(mask[:])
		kernel.NonZero(mask[:(n+7)/8], x[from*size:(from+n)*size], size)
		for i := 0; i < n; i += 64 {
			for w := binary.LittleEndian.Uint64(mask[i/8:]); w != 0; w &= w - 1 {
				dst = append(dst, int32(from+i+bits.TrailingZeros64(w)))
			}
		}
	}
	return dst
}
