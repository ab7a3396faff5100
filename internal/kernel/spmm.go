package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Limits of SparseRows: positions and rows are stored in a byte each.
const (
	SparseDepth = 256 // columns
	SparseLimit = 256 // rows
	SparseCols  = 32  // columns of the dense operand in one call
)

// SparseQuad is the number of rows that are multiplied together.
const SparseQuad = 4

// quadHead is the size in bytes of a quad before its indices: its rows, and the number of elements of each as a uint16.
const quadHead = SparseQuad + 2

// SparseRows are the nonzero elements of some rows of a sparse matrix, in at most SparseDepth columns of it. Rows are
// stored in quads, in the order of their counts: four rows, which are padded to the same number of elements. The i-th
// elements of the four rows are adjacent. An element has its column as a byte in index, after the head of its quad, and
// its value.
type SparseRows struct {
	sparseQuads
	SparseValues
	rows, depth int
	last        int    // number of elements of each row of the last quad
	stored      []byte // instead of values, unless they are SparseFloat
}

// sparseQuads are quads with their values as float32.
type sparseQuads struct {
	quads  int
	index  []byte
	values []float32
}

// NewSparseRows returns a matrix of depth columns without rows, with memory for this number of quads, of elems elements
// together.
func NewSparseRows(depth, quads, elems int, v SparseValues) *SparseRows {
	if depth > SparseDepth {
		panic(fmt.Sprintf("kernel: sparse rows of %d columns, want at most %d", depth, SparseDepth))
	}
	s := &SparseRows{depth: depth, SparseValues: v}
	s.index = make([]byte, 0, quads*quadHead+elems)
	if v.Type == SparseFloat {
		s.values = make([]float32, 0, elems)
	} else {
		s.stored = make([]byte, 0, (elems+sparseSlack)*v.Type.size())
	}
	return s
}

// Append appends four rows with these elements, whose columns ascend and are counted from first. The largest count of
// the four must not be less than that of the rows before.
func (s *SparseRows) Append(rows [SparseQuad]int, first int, cols [SparseQuad][]int32, values [SparseQuad][]float32) {
	count := 0
	for i, row := range rows {
		if row < 0 || row >= SparseLimit {
			panic(fmt.Sprintf("kernel: sparse row %d of at most %d", row, SparseLimit))
		}
		s.rows = max(s.rows, row+1)
		s.index = append(s.index, byte(row))
		count = max(count, len(cols[i]))
	}
	// Neighbours have equal counts in this order, which the branch predictor learns.
	if count < s.last {
		panic(fmt.Sprintf("kernel: sparse rows of %d elements after some of %d", count, s.last))
	}
	s.last = count
	s.index = binary.LittleEndian.AppendUint16(s.index, uint16(count))
	// Rows of a quad are padded to the same count: a loop ends once for four rows, whose sums are independent chains.
	// Quads and padding are 2 to 8 % of the memory.
	at, end := len(s.index), s.grow(SparseQuad*count)
	s.index = append(s.index, make([]byte, SparseQuad*count)...)
	for i, row := range cols {
		index := s.index[at:]
		for k, col := range row {
			if col -= int32(first); col < 0 || int(col) >= s.depth {
				panic(fmt.Sprintf("kernel: sparse column %d of %d", col, s.depth))
			}
			// A byte, as blocks are 256 columns deep. An element takes five bytes.
			index[SparseQuad*k+i] = byte(col)
		}
		s.set(end+i, values[i])
	}
	s.quads++
}

// Bytes is the size of the elements and their positions in memory.
func (s *SparseRows) Bytes() int64 {
	return int64(cap(s.index)) + 4*int64(cap(s.values)) + int64(cap(s.stored))
}

// At is one element. It searches the row.
func (s *SparseRows) At(row, col int) float32 {
	index, at := s.index, 0
	for range s.quads {
		head := index[:quadHead]
		count := SparseQuad * int(binary.LittleEndian.Uint16(head[SparseQuad:]))
		if i := bytes.IndexByte(head[:SparseQuad], byte(row)); i >= 0 {
			for e := i; e < count; e += SparseQuad {
				if v := s.value(at+e, row); int(index[quadHead+e]) == col && v != 0 {
					return v
				}
			}
			return 0
		}
		index, at = index[quadHead+count:], at+count
	}
	return 0
}

// SparseStride is the number of elements between rows of the sums for this number of columns.
func SparseStride(cols int) int {
	if cols == 1 {
		return 1
	}
	return (cols + 7) &^ 7
}

// Multiply stores the products of the rows and a dense matrix of at most SparseCols columns as rows of sums,
// SparseStride elements apart, or adds them. Element (k, j) of the dense matrix is x[j/16*panel+k*16+j%16], as in
// PackPanels; for one column it is x[k]. Surplus columns of sums get undefined values. Values of other types than
// SparseFloat are decoded into work, SparseWork elements.
//
// Every sum is a chain of fused multiply-adds in the order of k, as in GemmFloat, and bit-identical to it if x is
// finite. The twin rounds every product, as that of GemmFloat does.
func (s *SparseRows) Multiply(sums, x []float32, panel, cols int, add bool, work []float32) {
	if s.quads == 0 {
		return
	}
	if cols < 1 || cols > SparseCols || panel < 0 {
		panic(fmt.Sprintf("kernel: sparse product of %d columns in panels %d apart", cols, panel))
	}
	within("sums", len(sums), s.rows*SparseStride(cols))
	if cols == 1 {
		within("x", len(x), s.depth)
	} else {
		within("x", len(x), (cols-1)/GemmPanel*panel+s.depth*GemmPanel)
	}
	for q := range s.decoded(work) {
		if !q.bulk(sums, x, panel, cols, add) {
			q.plain(sums, x, panel, cols, add)
		}
	}
}

// plain is the twin.
func (q sparseQuads) plain(sums, x []float32, panel, cols int, add bool) {
	q.sum(sums, SparseStride(cols), cols, add, func(acc []float32, v float32,
		k int) {
		sparseStep(acc, v, x, k, panel)
	})
}

// sum stores or adds the sums of step for the elements of each row.
func (q sparseQuads) sum(sums []float32, stride, cols int, add bool, step func(acc []float32, v float32, k int)) {
	var memory [maxSparseWide]float32
	acc, index, values := memory[:cols], q.index, q.values
	for range q.quads {
		head := index[:quadHead]
		count := SparseQuad * int(binary.LittleEndian.Uint16(head[SparseQuad:]))
		index = index[quadHead:]
		for i, row := range head[:SparseQuad] {
			clear(acc)
			for e := i; e < count; e += SparseQuad {
				step(acc, values[e], int(index[e]))
			}
			// Rows are sorted by their counts, so their sums are scattered.
			to := sums[int(row)*stride:][:cols]
			if add {
				Add(to, to, acc)
			} else {
				copy(to, acc)
			}
		}
		index, values = index[count:], values[count:]
	}
}

// sparseStep adds v times row k of x.
func sparseStep(acc []float32, v float32, x []float32, k, panel int) {
	if len(acc) == 1 {
		acc[0] += float32(v * x[k])
		return
	}
	for j := range acc {
		acc[j] += float32(v * x[j/GemmPanel*panel+k*GemmPanel+j%GemmPanel])
	}
}
