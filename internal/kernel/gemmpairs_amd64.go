//go:build amd64 && !noasm

package kernel

// byPairs multiplies uint8 by int8 whose sums of pairs fit int16. A panel stays in the L1 cache during all rows.
func (g *gemmInt) byPairs() {
	const high = 4
	for j := 0; j < g.n; j += GemmPanel {
		for i := 0; i < g.m; i += high {
			g.pairs(i, j, min(high, g.m-i))
		}
	}
}

// pairs computes a tile, through a buffer if it has fewer columns than a panel.
func (g *gemmInt) pairs(i, j, rows int) {
	if j+GemmPanel <= g.n {
		g.multiplyPairs(i, j, rows, &g.c[i*g.ldc+j], g.ldc, asInt(g.first != nil))
		return
	}
	var tile [4 * GemmPanel]int32
	g.multiplyPairs(i, j, rows, &tile[0], GemmPanel, 0)
	takeTile(g.c[i*g.ldc+j:], g.ldc, tile[:], GemmPanel, rows, g.n-j, g.first != nil)
}

// multiplyPairs calls by name, like multiply of float32.
func (g *gemmInt) multiplyPairs(i, j, rows int, c *int32, ldc, add int) {
	a, b := &g.a[i*g.lda], &g.b[j/GemmPanel*g.panel]
	const aK, bK = GemmQuad, GemmQuad * GemmPanel
	k, aRow, cRow := g.k/GemmQuad, g.lda, 4*ldc
	switch rows {
	case 1:
		gemmPairs1x16AVX2(k, a, aRow, aK, b, bK, 0, c, cRow, add)
	case 2:
		gemmPairs2x16AVX2(k, a, aRow, aK, b, bK, 0, c, cRow, add)
	case 3:
		gemmPairs3x16AVX2(k, a, aRow, aK, b, bK, 0, c, cRow, add)
	default:
		gemmPairs4x16AVX2(k, a, aRow, aK, b, bK, 0, c, cRow, add)
	}
}

// bulk computes whole panels. The last strip begins earlier if rows are left, whose results are written twice.
func (p *requantizedPairs) bulk() (cols int) {
	const high = 4
	// With VPDPBUSD, QuadConv is faster.
	if hasVNNI || !hasAVX2 || p.m < high || p.k == 0 {
		return 0
	}
	whole := p.m / high
	for ; cols+GemmPanel <= p.n; cols += GemmPanel {
		p.strips(0, whole, cols)
		if p.m%high > 0 {
			p.strips(p.m-high, 1, cols)
		}
	}
	return cols
}

// strips computes strips of four rows from row i on, of the panel of column j.
func (p *requantizedPairs) strips(i, strips, j int) {
	requantizePairs4x16AVX2(strips, p.k/GemmQuad, &p.a[i*p.lda], p.lda, &p.b[j/GemmPanel*p.panel],
		&p.first[i*p.ldFirst+j], 4*p.ldFirst,
		&p.dst[i*p.to+j], p.to, &p.q.Scale[j], &p.q.Bias[j], p.q.Zero-roundShiftBits, both16(p.q.Levels.Lo),
		both16(p.q.Levels.Hi))
}

// shuffleBulk shuffles rows of n bytes, a multiple of PairWindow, if the CPU has the instructions.
func shuffleBulk(dst []byte, to int, src []byte, from, rows, n int, flip byte, order []byte) bool {
	if !hasAVX2 || rows == 0 || n == 0 {
		return hasAVX2
	}
	words, four := uint32(flip)*0x01010101, rows&^3
	if four > 0 {
		shuffle4AVX2(&dst[0], to, &src[0], from, four/4, n, words, &order[0])
	}
	if four < rows {
		shuffle1AVX2(&dst[four*to], to, &src[four*from], from, rows-four, n, words, &order[0])
	}
	return true
}
