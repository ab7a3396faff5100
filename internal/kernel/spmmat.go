package kernel

import (
	"fmt"
	"slices"
)

// SparseWide is the maximum number of columns of MultiplyAt on this CPU: as many sums of a quad as registers hold, or
// eight vectors.
func SparseWide() int { return sparseWide() }

const maxSparseWide = 112 // of all CPUs

// SparseOffsets are where the rows of a dense matrix start in memory; rows may overlap, as the taps of a convolution
// do.
type SparseOffsets struct {
	at    []int32
	reach int // the largest of them
}

// NewSparseOffsets returns offsets of rows, which are not negative.
func NewSparseOffsets(at []int32) SparseOffsets {
	if len(at) == 0 {
		return SparseOffsets{}
	}
	if least := slices.Min(at); least < 0 {
		panic(fmt.Sprintf("kernel: offset %d of a row", least))
	}
	return SparseOffsets{at, int(slices.Max(at))}
}

// MultiplyAt is Multiply with a dense matrix that is not packed: element (k, j) is x[offset k + j]. The number of
// columns is a multiple of eight, at most SparseWide(), and the distance of rows of sums.
func (s *SparseRows) MultiplyAt(sums, x []float32, rows SparseOffsets, cols int, add bool, work []float32) {
	if s.quads == 0 {
		return
	}
	if cols < 8 || cols > SparseWide() || cols%8 != 0 {
		panic(fmt.Sprintf("kernel: sparse product of %d columns", cols))
	}
	within("sums", len(sums), s.rows*cols)
	within("offsets", len(rows.at), s.depth)
	within("x", len(x), rows.reach+cols)
	for q := range s.decoded(work) {
		if !q.bulkAt(sums, x, rows.at, cols, add) {
			q.plainAt(sums, x, rows.at, cols, add)
		}
	}
}

// plainAt is the twin of bulkAt.
func (q sparseQuads) plainAt(sums, x []float32, at []int32, cols int, add bool) {
	q.sum(sums, cols, cols, add, func(acc []float32, v float32, k int) {
		for j, x := range x[at[k]:][:cols] {
			acc[j] += float32(v * x)
		}
	})
}
