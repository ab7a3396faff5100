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

// A product adds alpha·A·B to C, of which part is all or a triangle of a square one.
type product struct {
	c       []float64
	ldc     int
	a, b    matrix
	m, n, k int
	alpha   float64
	part    blas.Uplo
}

// Blocks. depth is part of what the result is: sums of depth products are rounded on their own before they are
// added up. A panel of B of so many steps stays in the L1 cache, a block of A of height rows in the L2 cache.
const (
	depth  = 256
	height = 96
)

// A tile is what one worker makes at a time: at most tallest by widest elements of C, in multiples of the kernel's.
const (
	tallest, widest = 768, 512
	least           = 48
	tilesPerWorker  = 4
)

// scratch is where a worker packs operands, and sums tiles that a triangle ends in.
type scratch struct {
	a, b, c []float64
}

// add cuts C into tiles and shares them. How it is cut changes no element.
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

// cut is the size of tiles such that there are enough, the longer side first.
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

// A tile is the elements from (i, j) to before (down, end).
type tile struct {
	*product
	i, down, j, end int
}

// outside reports whether nothing of it is wanted.
func (t *tile) outside() bool {
	switch t.part {
	case blas.Upper:
		return t.end <= t.i
	case blas.Lower:
		return t.down <= t.j
	}
	return false
}

// whole reports whether all of it is wanted.
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

// sum adds block after block of k to c, whose first element is the tile's.
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

// grow is n elements of buffer, whatever they hold.
func grow(buffer *[]float64, n int) []float64 {
	if cap(*buffer) < n {
		*buffer = make([]float64, n)
	}
	return (*buffer)[:n]
}
