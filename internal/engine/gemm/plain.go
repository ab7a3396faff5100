package gemm

// A Number is an element type of Plain: the types of MatMul without a kernel.
type Number interface {
	float32 | float64 | int32 | int64 | uint32 | uint64
}

// Plain stores A·B as rows of c that are stride elements apart, in plain Go. Sums are in the order of k, and of
// integers modulo their width.
func Plain[T Number](p Pool, s Shape, a, b Matrix[T], c []T, stride int) {
	if s.M <= 0 || s.N <= 0 {
		return
	}
	a.check("A", s.M, s.K)
	b.check("B", s.K, s.N)
	Rows(c, stride).check("C", s.M, s.N)
	g := newTiling(s, plainRows, maxCols, colStep, 1, p.Workers())
	p.Slots(g.tiles(), func(task, _ int) {
		rows, cols := g.tile(task)
		for ks := range (span{0, s.K}).blocks(plainDepth) {
			plainBlock(c, stride, a, b, rows, cols, ks)
		}
	})
}

// A block of B is plainDepth by maxCols elements, and used by plainRows rows.
const plainRows, plainDepth = 64, 32

func plainBlock[T Number](c []T, stride int, a, b Matrix[T], rows, cols, ks span) {
	for i := rows.from; i < rows.to; i++ {
		row := c[i*stride+cols.from:][:cols.len()]
		if ks.from == 0 {
			clear(row)
		}
		for k := ks.from; k < ks.to; k++ {
			addTimes(row, a.Data[i*a.Row+k*a.Col], b.from(k, cols.from))
		}
	}
}

// addTimes adds x times the first row of b. The conversion prevents a fused multiply-add, so that the result is the
// same on every CPU.
func addTimes[T Number](row []T, x T, b Matrix[T]) {
	if b.Col == 1 {
		y := b.Data[:len(row)]
		for j := range row {
			row[j] += T(x * y[j])
		}
		return
	}
	for j := range row {
		row[j] += T(x * b.Data[j*b.Col])
	}
}
