package spmm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// maxRows is the maximum number of rows of a task, so that its sums stay in the L2 cache; a task has minRows or more,
// unless the matrix has fewer, because each one packs its part of the dense operand.
const minRows, maxRows = 128, 1024

// panel is the number of elements between panels of the dense operand: a line more than they have, since rows of
// several panels in the same set of the L1 cache are read slower.
const panel = (gemm.Depth + 1) * kernel.GemmPanel

// Work is the scratch memory in bytes of products of a sparse matrix with this number of rows and a dense one with this
// number of columns.
func Work(rows, cols, workers int) int64 {
	return 4 * int64(workers) * int64(slot(rows, cols))
}

// slot is the number of elements of scratch memory per worker: panels of the dense operand, which start at cache lines
// if the memory does, rows of it to be transposed, sums, and decoded values.
func slot(rows, cols int) int {
	n := panels(cols)*panel + min((rows+kernel.SparseQuad-1)/kernel.SparseQuad*kernel.SparseQuad,
		maxRows)*kernel.SparseStride(min(cols, kernel.SparseCols)) + kernel.SparseWork
	return (n + kernel.GemmPanel - 1) / kernel.GemmPanel * kernel.GemmPanel
}

// panels is the number of panels of a task of this number of columns or more, with one for rows to be transposed.
func panels(cols int) int {
	return (min(cols, kernel.SparseCols)+kernel.GemmPanel-1)/kernel.GemmPanel + 1
}

// Right computes products A·W: their right operand is the transposed matrix w, of N rows and K columns, their left one
// A.
func Right(p gemm.Pool, w *Matrix, s gemm.Shape, work []byte, products ...gemm.FloatProduct) {
	s.M, s.N = s.N, s.M
	multiply(p, w, s, work, products, true)
}

// Left computes products W·B: their left operand is the matrix w, of M rows and K columns, their right one B or Panels.
func Left(p gemm.Pool, w *Matrix, s gemm.Shape, work []byte, products ...gemm.FloatProduct) {
	multiply(p, w, s, work, products, false)
}

// multiply computes products of shape s, whose result is transposed or not. Tasks are tiles of columns of the dense
// operand, and if these are too few for the workers, parts of the rows of w.
func multiply(p gemm.Pool, w *Matrix, s gemm.Shape, work []byte, products []gemm.FloatProduct, transposed bool) {
	if w.rows != s.M || w.k != s.K {
		panic(fmt.Sprintf("spmm: matrix of %d by %d, want %d by %d", w.rows, w.k, s.M, s.K))
	}
	if want := Work(s.M, s.N, p.Workers()); int64(len(work)) < want {
		panic(fmt.Sprintf("spmm: scratch of %d bytes, want %d", len(work), want))
	}
	if s.M == 0 || s.N == 0 || len(products) == 0 {
		return
	}
	// 32 columns are half of the L1 cache as panels, and all registers as sums.
	tiles := (s.N + kernel.SparseCols - 1) / kernel.SparseCols
	parts := w.parts(pieces(s.M, tiles*len(products), p.Workers()))
	scratch, size := kernel.Words[float32](work), slot(s.M, s.N)
	tasks := len(products) * tiles * len(parts)
	p.Slots(tasks, func(at, slot int) {
		from := at / len(parts) % tiles * kernel.SparseCols
		t := task{
			FloatProduct: &products[at/len(parts)/tiles], shape: s, groups: parts[at%len(parts)],
			from: from, to: min(from+kernel.SparseCols, s.N), transposed: transposed,
		}
		t.run(scratch[slot*size:][:size])
	})
}

// pieces is the number of parts of the rows for this number of tiles: four tasks per worker.
func pieces(rows, tiles, workers int) int {
	const perWorker = 4
	if workers == 1 {
		return 1
	}
	return max(1, min((perWorker*workers+tiles-1)/tiles, rows/minRows))
}

// A task is the product of groups of rows and some columns of the dense operand.
type task struct {
	*gemm.FloatProduct
	shape      gemm.Shape
	groups     []group
	from, to   int // columns
	transposed bool
}

func (t *task) run(work []float32) {
	stride, cols := kernel.SparseStride(t.to-t.from), t.to-t.from
	first, last := t.groups[0].from, t.groups[len(t.groups)-1].to
	work, decoded := work[:len(work)-kernel.SparseWork], work[len(work)-kernel.SparseWork:]
	work, sums := work[:panels(cols)*panel], work[panels(cols)*panel:]
	sums = sums[:(last-first+kernel.SparseQuad-1)/kernel.SparseQuad*kernel.SparseQuad*stride]
	switch {
	case t.Accumulate && t.transposed:
		kernel.TransposeInto(sums, stride, t.C[t.from*t.Stride+first:], t.Stride, cols, last-first)
	case t.Accumulate:
		kernel.CopyRows(sums, stride, t.C[first*t.Stride+t.from:], t.Stride, last-first, cols)
	}
	// Blocks outside, groups inside: a packed block of the dense operand serves all rows of the task.
	for b, k := 0, 0; k < t.shape.K; b, k = b+1, k+gemm.Depth {
		// Packed by each task, as panels of gemm are: its part is in its own cache.
		x := t.dense(work, k, min(k+gemm.Depth, t.shape.K))
		for _, g := range t.groups {
			g.blocks[b].Multiply(sums[(g.from-first)*stride:], x, panel, cols, b > 0 || t.Accumulate, decoded)
		}
	}
	if t.shape.K == 0 && !t.Accumulate {
		clear(sums)
	}
	if t.transposed {
		t.storeTransposed(sums, work, stride, first, last)
	} else {
		t.store(sums, stride, first, last)
	}
}

// dense is the columns of the task and the rows k0 to k1-1 of the dense operand, in panels in work, or as they are if
// it is one column.
func (t *task) dense(work []float32, k0, k1 int) []float32 {
	m, cols := t.B, t.to-t.from
	if t.transposed {
		m = t.A.T()
	}
	whole := cols / kernel.GemmPanel * kernel.GemmPanel
	switch {
	case t.Panels != nil:
		for n := t.from; n < t.to; n += kernel.GemmPanel {
			t.Panels(work[(n-t.from)/kernel.GemmPanel*panel:][:panel], k0, k1, n, min(n+kernel.GemmPanel, t.to))
		}
	// One column is a vector already.
	case cols == 1 && m.Row == 1:
		return m.Data[k0+t.from*m.Col:]
	// Whole panels are packed by vectors, so the last columns are filled up with zeros.
	case m.Row == 1 && whole < cols:
		t.pack(work, m, k0, k1, t.from, whole)
		rest := work[whole/kernel.GemmPanel*panel:]
		t.pack(rest, padded(rest[panel:], m, k0, k1-k0, t.from+whole, cols-whole), 0, k1-k0, 0, kernel.GemmPanel)
	default:
		t.pack(work, m, k0, k1, t.from, cols)
	}
	if cols == 1 {
		for k := range k1 - k0 {
			work[k] = work[k*kernel.GemmPanel]
		}
	}
	return work
}

// pack packs the rows k0 to k1-1 and cols columns of m from column n on.
func (t *task) pack(dst []float32, m gemm.Matrix[float32], k0, k1, n, cols int) {
	if cols > 0 {
		kernel.PackPanels(dst, panel, m.Data[k0*m.Row+n*m.Col:], m.Row, m.Col, k1-k0, cols)
	}
}

// padded copies columns of m, which are contiguous, to work, and zeros up to a whole panel: whole panels are packed
// faster.
func padded(work []float32, m gemm.Matrix[float32], k0, depth, n, cols int) gemm.Matrix[float32] {
	for j := range cols {
		copy(work[j*depth:][:depth], m.Data[k0+(n+j)*m.Col:])
	}
	clear(work[cols*depth : kernel.GemmPanel*depth])
	return gemm.Matrix[float32]{Data: work, Row: 1, Col: depth}
}

// store applies the epilogue to the rows first to last-1 of the result and stores them.
func (t *task) store(sums []float32, stride, first, last int) {
	t.Epilogue.Apply(sums, stride, first, last, t.from, t.to)
	if t.Store == nil {
		kernel.CopyRows(t.C[first*t.Stride+t.from:], t.Stride, sums, stride, last-first, t.to-t.from)
		return
	}
	for i := first; i < last; i++ {
		t.Store(sums[(i-first)*stride:][:t.to-t.from], i, t.from)
	}
}

// storeTransposed stores the columns first to last-1 of the result and applies the epilogue to them. Those for Store
// are in work, as many at a time as fit into it.
func (t *task) storeTransposed(sums, work []float32, stride, first, last int) {
	cols := t.to - t.from
	if t.Store == nil {
		t.finish(t.C[t.from*t.Stride+first:], t.Stride, sums, stride, first, last)
		return
	}
	// As many as fit into the panels, which are not needed any more.
	const step = 256
	for at := first; at < last; at += step {
		end := min(at+step, last)
		t.finish(work, step, sums[(at-first)*stride:], stride, at, end)
		for j := range cols {
			t.Store(work[j*step:][:end-at], t.from+j, at)
		}
	}
}

// finish writes transposed sums to c and applies the epilogue.
func (t *task) finish(c []float32, to int, sums []float32, stride, first, last int) {
	if cols := t.to - t.from; cols == 1 {
		copy(c, sums[:last-first])
	} else {
		kernel.TransposeInto(c, to, sums, stride, last-first, cols)
	}
	t.Epilogue.Apply(c, to, t.from, t.to, first, last)
}
