package blas

import (
	"sync/atomic"

	"gonum.org/v1/gonum/blas"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A matrix is a view: element (i, j) is data[i*row+j*col].
type matrix struct {
	data     []float64
	row, col int
}

func matrixOf(data []float64, stride int, t blas.Transpose) matrix {
	if t == blas.NoTrans {
		return matrix{data, stride, 1}
	}
	return matrix{data, 1, stride}
}

func (m matrix) t() matrix { return matrix{m.data, m.col, m.row} }

func (m matrix) from(i, j int) []float64 { return m.data[i*m.row+j*m.col:] }

// A product adds alpha·A·B to C, or to one triangle of a square C.
type product struct {
	c       []float64
	ldc     int
	a, b    matrix
	m, n, k int
	alpha   float64
	part    blas.Uplo
}

// Block sizes. depth determines the rounding: partial sums of depth products are rounded before they are
// added. A panel of B of depth steps fits in the L1 cache, a block of A of height rows in the L2 cache.
const (
	depth  = 256
	height = 96
)

// A tile is the unit of work: at most tallest by widest elements of C, in multiples of the kernel's tile.
const (
	tallest, widest = 768, 512
	least           = 48
	tilesPerWorker  = 4
)

// scratch is a worker's memory for packed operands, and for tiles on the diagonal of a triangle.
type scratch struct {
	a, b, c []float64
}

// add distributes the tiles of C over workers. Tiling changes no element.
func (impl Implementation) add(p *product) {
	rows, cols := p.cut(tilesPerWorker * impl.pool.Workers())
	var tiles []tile
	for j := 0; j < p.n; j += cols {
		for i := 0; i < p.m; i += rows {
			if t := (tile{p, i, min(i+rows, p.m), j, min(j+cols, p.n)}); !t.outside() {
				tiles = append(tiles, t)
			}
		}
	}
	var next atomic.Int64
	impl.pool.For(min(len(tiles), impl.pool.Workers()), func(int) {
		s := impl.scratch.Get().(*scratch)
		defer impl.scratch.Put(s)
		for i := int(next.Add(1)) - 1; i < len(tiles); i = int(next.Add(1)) - 1 {
			tiles[i].run(s)
		}
	})
}

// cut is the tile size that gives at least want tiles; the longer side is halved first.
func (p *product) cut(want int) (rows, cols int) {
	rows, cols = min(p.m, tallest), min(p.n, widest)
	for (p.m+rows-1)/rows*((p.n+cols-1)/cols) < want && max(rows, cols) > least {
		if rows > cols {
			rows = roundUp((rows+1)/2, least)
		} else {
			cols = roundUp((cols+1)/2, least)
		}
	}
	return rows, cols
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// A tile is the elements of rows [i, down) and columns [j, end).
type tile struct {
	*product
	i, down, j, end int
}

// outside reports whether no element is in the triangle.
func (t *tile) outside() bool {
	switch t.part {
	case blas.Upper:
		return t.end <= t.i
	case blas.Lower:
		return t.down <= t.j
	}
	return false
}

// whole reports whether all elements are in the triangle.
func (t *tile) whole() bool {
	switch t.part {
	case blas.Upper:
		return t.down <= t.j+1
	case blas.Lower:
		return t.end <= t.i+1
	}
	return true
}

func (t *tile) run(s *scratch) {
	if t.whole() {
		t.sum(s, t.c[t.i*t.ldc+t.j:], t.ldc)
		return
	}
	wide := t.end - t.j
	c := grow(&s.c, (t.down-t.i)*wide)
	for i := t.i; i < t.down; i++ {
		copy(c[(i-t.i)*wide:][:wide], t.c[i*t.ldc+t.j:])
	}
	t.sum(s, c, wide)
	for i := t.i; i < t.down; i++ {
		from, to := t.j, t.end
		if t.part == blas.Upper {
			from = min(max(from, i), to)
		} else {
			to = max(min(to, i+1), from)
		}
		copy(t.c[i*t.ldc+from:i*t.ldc+to], c[(i-t.i)*wide+from-t.j:])
	}
}

// sum adds the product to c, block by block of k; c starts at the first element of the tile.
func (t *tile) sum(s *scratch, c []float64, ldc int) {
	wide := t.end - t.j
	for k := 0; k < t.k; k += depth {
		deep := min(depth, t.k-k)
		b := grow(&s.b, roundUp(wide, kernel.DoublePanel)*deep)
		kernel.PackDouble(b, kernel.DoublePanel, t.b.from(k, t.j), t.b.col, t.b.row, wide, deep, 1)
		for i := t.i; i < t.down; i += height {
			tall := min(height, t.down-i)
			a := grow(&s.a, roundUp(tall, kernel.DoubleRows)*deep)
			kernel.PackDouble(a, kernel.DoubleRows, t.a.from(i, k), t.a.row, t.a.col, tall, deep, t.alpha)
			kernel.GemmDouble(c[(i-t.i)*ldc:], ldc, a, b, tall, wide, deep)
		}
	}
}

// grow is a slice of n elements of buffer, not cleared.
func grow(buffer *[]float64, n int) []float64 {
	if cap(*buffer) < n {
		*buffer = make([]float64, n)
	}
	return (*buffer)[:n]
}
