package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/ir"
)

// operandInputs holds the indices of the product's operands and their zero points among an operator's inputs; -1 if it
// has none.
type operandInputs struct{ a, b, aZero, bZero int }

// A product is a quantized matrix product: matrices M×K and K×N whose leading axes broadcast, like those of MatMul.
type product struct {
	operandInputs
	gemm.Shape
	rows           int // of one matrix A, equal to M unless all rows are multiplied at once
	transA, transB bool
	batch          []int64 // leading axes of the result
	aBatch, bBatch []int64
	shape          []int64 // of the result
}

// productOf reads the shapes of the operands; A may be floats that are quantized dynamically.
func productOf(n *op.Node, in []*ir.Array, w operandInputs) (*product, error) {
	a, err := op.Arg(in, w.a, "A")
	if err != nil {
		return nil, err
	}
	b, err := op.Arg(in, w.b, "B")
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense || b.Kind != ir.Dense || !isByte(b.DType) || !isByte(a.DType) && a.DType != ir.Float {
		return nil, fmt.Errorf("inputs A and B are %s and %s, want int8 or uint8", a, b)
	}
	if len(a.Shape) == 0 || len(b.Shape) == 0 {
		return nil, fmt.Errorf("inputs A and B are %s and %s, want vectors or matrices", a, b)
	}
	p := &product{operandInputs: w, transA: transposes(n, "transA", a), transB: transposes(n, "transB", b)}
	as, bs := asMatrix(a.Shape, true), asMatrix(b.Shape, false)
	m, k := tail(as, p.transA)
	k2, width := tail(bs, p.transB)
	if k != k2 {
		return nil, fmt.Errorf("inputs A and B are %s and %s: inner sizes %d and %d differ", a, b, k, k2)
	}
	p.M, p.N, p.K = int(m), int(width), int(k)
	p.aBatch, p.bBatch = as[:len(as)-2], bs[:len(bs)-2]
	if p.batch, err = op.BroadcastShapes(p.aBatch, p.bBatch); err != nil {
		return nil, fmt.Errorf("leading axes of A and B: %w", err)
	}
	p.shape = slices.Clone(p.batch)
	if len(a.Shape) > 1 {
		p.shape = append(p.shape, m)
	}
	if len(b.Shape) > 1 {
		p.shape = append(p.shape, width)
	}
	p.rows = p.M
	// Few rows of each matrix fill no tiles of the kernels.
	if op.Product(p.bBatch) == 1 && !p.transA {
		p.M *= int(op.Product(p.batch)) // one matrix B: all rows at once
		p.batch, p.aBatch, p.bBatch = nil, nil, nil
	}
	if err := checkZero("A", optional(in, w.aZero), a, p.rows, int(op.Product(as[:len(as)-1]))); err != nil {
		return nil, err
	}
	return p, checkZero("B", optional(in, w.bZero), b, p.N, int(op.Product(bs[:len(bs)-2]))*p.N)
}

// transposes reports whether the attribute is set and a is a matrix: a vector is not transposed.
func transposes(n *op.Node, attr string, a *ir.Array) bool {
	return n.Bool(attr, false) && len(a.Shape) > 1
}

func asMatrix(shape []int64, left bool) []int64 {
	switch {
	case len(shape) > 1:
		return shape
	case left:
		return []int64{1, shape[0]}
	}
	return []int64{shape[0], 1}
}

// tail is the last two lengths, swapped for a transposed matrix.
func tail(s []int64, transposed bool) (rows, cols int64) {
	rows, cols = s[len(s)-2], s[len(s)-1]
	if transposed {
		return cols, rows
	}
	return rows, cols
}

// checkZero checks that a zero point has the operand's type, and is per-tensor, or per row of A or column of B, of one
// matrix or of all.
func checkZero(name string, zero, operand *ir.Array, each, all int) error {
	if zero == nil || zero.Kind == ir.Dense && zero.DType == operand.DType &&
		slices.Contains([]int{1, each, all}, int(zero.Elems())) {
		return nil
	}
	return fmt.Errorf("the zero point of %s is %s, want one or %d of its type, %s", name, zero, each, operand.DType)
}

// An input is a required input.
type input struct {
	at   int
	name string
}

func requireInputs(in []*ir.Array, list ...input) error {
	for _, i := range list {
		if _, err := op.Arg(in, i.at, i.name); err != nil {
			return err
		}
	}
	return nil
}

// optional is input i, nil if the operator does not have it.
func optional(in []*ir.Array, i int) *ir.Array {
	if i < 0 {
		return nil
	}
	return op.Opt(in, i)
}

// count is the number of products.
func (p *product) count() int { return int(op.Product(p.batch)) }

// at returns the matrices A and B of product i.
func (p *product) at(i int) (a, b int) {
	// From the last axis on: strides grow by the lengths of those after.
	stepA, stepB := 1, 1
	for x := len(p.batch) - 1; x >= 0; x-- {
		at := i % int(p.batch[x])
		i /= int(p.batch[x])
		a, stepA = place(a, stepA, at, p.aBatch, x-len(p.batch))
		b, stepB = place(b, stepB, at, p.bBatch, x-len(p.batch))
	}
	return a, b
}

// place adds index at of an axis, counted from the last, to an offset. Axes of length 1 broadcast.
func place(off, step, at int, batch []int64, axis int) (int, int) {
	axis += len(batch)
	if axis < 0 || batch[axis] == 1 {
		return off, step
	}
	return off + at*step, step * int(batch[axis])
}

// prepare prepacks a constant B.
func (w operandInputs) prepare(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	b := optional(in, w.b)
	if b == nil || len(b.Shape) < 2 || !isByte(b.DType) {
		return nil, nil
	}
	// Sparse first, as only one form of a weight is held.
	if made := w.prepareSparse(n, in, pool); made != nil {
		return made, nil
	}
	k, width := tail(b.Shape, n.Bool("transB", false))
	packed := make([]*gemm.PackedInt, op.Product(b.Shape[:len(b.Shape)-2]))
	made := &op.Prepared{State: packed, Drops: []int{w.b}}
	for i := range packed {
		m := matrix(b.Data[int64(i)*k*width:][:k*width], int(k), int(width), n.Bool("transB", false))
		packed[i] = gemm.PackInt(pool, m, int(k), int(width), b.DType == ir.Int8)
		made.Bytes += packed[i].Bytes()
	}
	return made, nil
}

// matrix is a row-major matrix, or one that is stored transposed.
func matrix[T any](data []T, rows, cols int, transposed bool) gemm.Matrix[T] {
	if transposed {
		return gemm.Rows(data, rows).T()
	}
	return gemm.Rows(data, cols)
}

// work is the size of the scratch memory. finish means that there is a finisher.
func (p *product) work(n *op.Node, in []*ir.Array, workers int, finish bool) int64 {
	packed := n.IsConst(p.b) && len(in[p.b].Shape) >= 2
	work := gemm.IntWork(p.Shape, p.count(), workers, packed, finish)
	if packed && p.maybeSparse(n) {
		// The number of zeros is not known while memory is planned.
		work = max(work, spmm.Work(p.N, p.M, workers))
	}
	return work
}

// A finisher receives a part of a row of product i, from column col on.
type finisher func(i, row, col int, sums []int32)

// run multiplies a, the quantized A, signed or not. Sums are passed to finish, or written to c if that is nil.
func (p *product) run(c *op.Call, a []byte, signed bool, aZero []int32, work []byte, to []int32,
	finish finisher) error {
	bZero, err := zeros(optional(c.In, p.bZero))
	if err != nil {
		return err
	}
	// A correction by the sums of the rows of A would be computed and be 0.
	if !slices.ContainsFunc(bZero, func(z int32) bool { return z != 0 }) {
		bZero = nil
	}
	// All rows are multiplied at once, and each matrix has the same zero points.
	if len(aZero) == p.rows && p.rows != p.M {
		aZero = slices.Repeat(aZero, p.M/max(p.rows, 1))
	}
	if w, ok := c.State.(*spmm.Matrix); ok {
		// Zeros are stored as differences from constant zero points; others are subtracted by the sums of A.
		if c.Node.IsConst(p.bZero) {
			bZero = nil // subtracted from the matrix
		}
		p.runSparse(c, w, a, signed, aZero, bZero, work, to, finish)
		return nil
	}
	packed, _ := c.State.([]*gemm.PackedInt)
	b := c.In[p.b]
	products := make([]gemm.IntProduct, p.count())
	for i := range products {
		ia, ib := p.at(i)
		q := gemm.IntProduct{ASigned: signed, AZero: partOf(aZero, ia, p.M), BZero: partOf(bZero, ib, p.N)}
		q.A = matrix(part(a, ia, p.M*p.K), p.M, p.K, p.transA)
		if packed != nil {
			q.Packed = packed[ib]
		} else {
			q.B, q.BSigned = matrix(part(b.Data, ib, p.K*p.N), p.K, p.N, p.transB), b.DType == ir.Int8
		}
		if finish == nil {
			q.C, q.Stride = part(to, i, p.M*p.N), p.N
		} else {
			q.Finish = gemm.EachRow(func(row, col int, sums []int32) { finish(i, row, col, sums) })
		}
		products[i] = q
	}
	gemm.Int(c.Pool, p.Shape, work, products...)
	return nil
}

// zeros are the elements of a zero point, none if absent.
func zeros(a *ir.Array) ([]int32, error) {
	if a == nil {
		return nil, nil
	}
	return integers(a)
}

// partOf is the part of values, one per row or column, that belongs to matrix i of n rows or columns.
func partOf[T any](all []T, i, n int) []T {
	if len(all) <= n || n == 0 {
		return all
	}
	return part(all, i, n)
}

// part is the i-th of the equal parts of xs that have n elements.
func part[T any](xs []T, i, n int) []T { return xs[i*n : (i+1)*n : (i+1)*n] }
