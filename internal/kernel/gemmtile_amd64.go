//go:build amd64 && !noasm

package kernel

import "golang.org/x/sys/cpu"

var (
	hasFMA = hasAVX2 && cpu.X86.HasFMA
	// only the first Xeon Phis lack the latter two
	hasAVX512 = hasFMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL
)

// gemmTall is the rows of the largest tile in AVX2; in AVX-512 it is twice that.
const gemmTall = 6

func gemmRows() int {
	if hasAVX512 {
		return 2 * gemmTall
	}
	return gemmTall
}

// gemmGroup is the number of panels that are multiplied by all rows before the next ones: few enough for the L2 cache,
// and enough for the widest tile.
const gemmGroup = 4

// bulk computes everything and reports true if the CPU has the instructions.
func (g *gemm) bulk() bool {
	if !hasFMA {
		return false
	}
	whole := g.m / gemmRows() * gemmRows()
	// A group of panels stays in the L2 cache while all rows of A pass by.
	for j := 0; j < g.n; j += gemmGroup * GemmPanel {
		end := min(g.n, j+gemmGroup*GemmPanel)
		g.strips(0, whole, gemmRows(), j, end)
		for i := whole; i < g.m; {
			rows := gemmRest(g.m - i)
			g.strips(i, i+rows, rows, j, end)
			i += rows
		}
	}
	return true
}

// gemmRest is the number of rows of the tallest tile for the last rows.
func gemmRest(rows int) int {
	switch {
	case !hasAVX512:
		return min(rows, gemmTall)
	case rows >= 8:
		return 8
	}
	return min(rows, 4)
}

// strips computes the rows from i to down, high at a time, and the columns from j to end. A panel stays in the L1 cache
// during the strips of a.
func (g *gemm) strips(i, down, high, j, end int) {
	for wide := gemmWide(high); j < end; j += wide {
		// No whole tile is left: the last panel alone, as surplus columns cost as much as others.
		if j+wide-GemmPanel >= end {
			wide = GemmPanel
		}
		// 49 columns, images of 7×7 of ResNet: 74 instead of 64 GFLOP/s.
		if end-j <= gemmHalf && high%gemmTall == 0 {
			g.half(i, down, j)
			return
		}
		for i := i; i < down; i += high {
			g.tile(i, j, high, wide)
		}
	}
}

// gemmHalf is the columns of half a panel.
const gemmHalf = GemmPanel / 2

// half computes rows of a last panel of which at most half is needed: twice as many at once, if the layout of a allows.
func (g *gemm) half(i, down, j int) {
	high := gemmRows()
	// Twice as many rows give the registers that half the columns leave free something to sum in, but rows must be
	// equally far apart.
	if g.a.Strip == high*g.a.Row {
		high = 2 * gemmTall
	}
	for ; i < down; i += high {
		high = min(high, down-i)
		g.tile(i, j, high, gemmHalf)
	}
}

// gemmWide is the number of columns of the largest tile of that many rows.
func gemmWide(rows int) int {
	switch rows {
	case 1:
		// Four panels at once: a sum waits four cycles for the one before it.
		return 4 * GemmPanel
	case gemmTall - 1, gemmTall:
		return GemmPanel
	case 4:
		if !hasAVX512 {
			return GemmPanel
		}
	}
	return 2 * GemmPanel
}

// tile computes a tile, through a buffer if it exceeds c.
func (g *gemm) tile(i, j, rows, wide int) {
	// The tile is stored with whole vectors, which must not exceed the row of c.
	if j+wide <= g.n {
		g.multiply(i, j, rows, wide, &g.c[i*g.ldc+j], g.ldc, asInt(g.add))
		return
	}
	g.edge(i, j, rows, wide)
}

// edge is separate from tile because it clears its buffer.
func (g *gemm) edge(i, j, rows, wide int) {
	var tile [2 * gemmTall * 2 * GemmPanel]float32
	g.multiply(i, j, rows, wide, &tile[0], wide, 0)
	takeTile(g.c[i*g.ldc+j:], g.ldc, tile[:], wide, rows, g.n-j, g.add)
}

// multiply calls by name, because a call through a function value would move the tile of an edge to the heap.
func (g *gemm) multiply(i, j, rows, wide int, c *float32, ldc, add int) {
	high := gemmRows()
	a, b := &g.a.Data[i/high*g.a.Strip+i%high*g.a.Row], &g.b.Data[j/GemmPanel*g.b.Panel]
	k, aRow, aK, bK, bPanel, cRow := g.k, 4*g.a.Row, 4*g.a.K, 4*g.b.K, 4*g.b.Panel, 4*ldc
	switch shape := (tileShape{rows, wide}); shape {
	case tileShape{1, 16}:
		gemm1x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{1, 64}:
		gemm1x64AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{2, 16}:
		gemm2x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{2, 32}:
		gemm2x32AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{3, 16}:
		gemm3x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{3, 32}:
		gemm3x32AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{4, 16}:
		if hasAVX512 {
			gemm4x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
			return
		}
		gemm4x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{5, 16}:
		gemm5x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{6, 16}:
		next := g.prefetch(i, j, wide)
		gemm6x16AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add, next.at, next.lines)
	case tileShape{6, 8}:
		gemm6x8AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{12, 8}:
		gemm12x8AVX2(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	default:
		gemmWideTile(shape, k, a, aRow, aK, b, bK, bPanel, c, cRow, add, g.prefetch(i, j, wide))
	}
}

// gemmWideTile calls the tile of this shape in AVX-512.
func gemmWideTile(shape tileShape, k int, a *float32, aRow, aK int, b *float32, bK, bPanel int, c *float32, cRow,
	add int, next prefetch) {
	switch shape {
	case tileShape{4, 32}:
		gemm4x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{8, 16}:
		gemm8x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	case tileShape{8, 32}:
		gemm8x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add, next.at, next.second, next.lines)
	case tileShape{12, 16}:
		gemm12x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add)
	default:
		gemm12x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, add, next.at, next.second, next.lines)
	}
}

// A prefetch is what a strip of a tile prefetches: offsets from B, of the second panel from the first, and the lines of
// a panel for four steps of k.
type prefetch struct{ at, second, lines int }

// prefetch divides the panels that are multiplied next among the first strips: the more there are, the more time memory
// has. Nothing is left for others: lines of B itself take no time.
func (g *gemm) prefetch(i, j, wide int) prefetch {
	next, second, strip, several := wide/GemmPanel*g.b.Panel, 4*g.b.Panel, i/gemmRows(), g.prefetchingStrips()
	if j+wide >= g.n && g.b.Next != 0 {
		next = g.b.Next - j/GemmPanel*g.b.Panel
	}
	part := GemmPanel / 4 * g.k // of a panel, in elements
	switch {
	case g.b.K != GemmPanel:
	// A line every four steps. All lines in the first strip were slower: that strip waited for weights from memory. 128
	// rows with weights from memory, one core of an Intel Xeon with AVX-512: 155 → 215 GFLOP/s.
	case g.m >= 8*gemmRows() && strip < 8: // one panel after the other
		return prefetch{4 * (next + strip/4*g.b.Panel + strip%4*part), 0, 1}
	// Fewer than eight strips have less time, so each prefetches more lines. 160 to 960 channels of 7×7 pixels with
	// AVX2: 171 → 127 µs.
	case strip < several:
		return prefetch{4 * (next + strip*4/several*part), second, 4 / several}
	}
	return prefetch{}
}

// prefetchingStrips is the number of strips that prefetch if there are fewer than eight: 1, 2 or 4.
func (g *gemm) prefetchingStrips() int {
	switch strips := g.m / gemmRows(); {
	case strips >= 4:
		return 4
	case strips >= 2:
		return 2
	}
	return 1
}

// split is how many of so many strips prefetch: all if the products are too short for another call.
func (g *gemm) split(strips int) int {
	const short = 64
	if g.k < short {
		return strips
	}
	return min(strips, g.prefetchingStrips())
}

// A tileShape is a tile with an assembly function.
type tileShape struct{ rows, cols int }

// gemvPart is the number of columns of four rows that are read before the next rows: at most a page of each, and the
// sums stay in the L1 cache.
const gemvPart = 1024

// gemvBulk computes multiples of 16 columns. With FMA it computes the rest too, as 16 columns through buffers, so that
// no sum is rounded differently.
func gemvBulk(sums, a []float32, step int, b []float32, row, k int) (n int) {
	if !hasFMA {
		return 0
	}
	n = len(sums) &^ (GemmPanel - 1)
	for j := 0; j < n; j += gemvPart {
		gemvColumns(sums[j:min(n, j+gemvPart)], a, step, b[j:], row, k)
	}
	if n < len(sums) {
		gemvTail(sums[n:], a, step, b[n:], row, k)
	}
	return len(sums)
}

func gemvColumns(sums, a []float32, step int, b []float32, row, k int) {
	// Four rows of B at once read and write the sums a quarter as often.
	whole := k &^ 3
	for i := 0; i < whole; i += 4 {
		gemv4AVX2(&sums[0], len(sums), &a[i*step], 4*step, &b[i*row], 4*row)
	}
	for i := whole; i < k; i++ {
		gemv1AVX2(&sums[0], len(sums), &a[i*step], 4*step, &b[i*row], 4*row)
	}
}

func gemvTail(sums, a []float32, step int, b []float32, row, k int) {
	var wide, last [GemmPanel]float32
	// Through a vector, as plain Go would round each product.
	copy(wide[:], sums)
	for i := range k {
		copy(last[:], b[i*row:][:len(sums)])
		gemv1AVX2(&wide[0], GemmPanel, &a[i*step], 4*step, &last[0], 0)
	}
	copy(sums, wide[:])
}
