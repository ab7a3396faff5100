//go:build amd64 && !noasm

package kernel

// bulk reports whether there are instructions for this; then it has done all of it.
func (g *gemmInt) bulk() bool {
	if !hasAVX2 {
		return false
	}
	whole := g.m / gemmTall * gemmTall
	for j := 0; j < g.n; j += GemmPanel {
		end := min(g.n, j+GemmPanel)
		g.strips(0, whole, gemmTall, j, end)
		g.strips(whole, g.m, g.m-whole, j, end)
	}
	return true
}

// strips makes the rows from i to down, high at a time, of a panel: half of it at once, all if
// there are few rows.
func (g *gemmInt) strips(i, down, high, j, end int) {
	wide := GemmPanel / 2
	if high <= 2 {
		wide = GemmPanel
	}
	for ; j < end; j += wide {
		for i := i; i < down; i += high {
			g.tile(i, j, high, wide)
		}
	}
}

func (g *gemmInt) tile(i, j, rows, wide int) {
	if j+wide > g.n {
		g.edge(i, j, rows, wide)
		return
	}
	add := 0
	if g.add {
		add = 1
	}
	g.multiply(i, j, rows, &g.c[i*g.ldc+j], g.ldc, add)
}

// edge makes a tile that sticks out of c on the right.
func (g *gemmInt) edge(i, j, rows, wide int) {
	var tile [gemmTall * GemmPanel]int32
	g.multiply(i, j, rows, &tile[0], wide, 0)
	for r := range rows {
		c := g.c[(i+r)*g.ldc+j : (i+r)*g.ldc+g.n]
		if !g.add {
			copy(c, tile[r*wide:])
			continue
		}
		for x := range c {
			c[x] += tile[r*wide+x]
		}
	}
}

// multiply calls by name, as its namesake of float32 does.
func (g *gemmInt) multiply(i, j, rows int, c *int32, ldc, add int) {
	a, b := &g.a[i*g.lda], &g.b[j/GemmPanel*g.panel+j%GemmPanel*GemmQuad]
	quads, aRow, cRow := g.k/GemmQuad, 2*g.lda, 4*ldc
	switch rows {
	case 1:
		gemmInt1x16AVX2(quads, a, aRow, b, c, cRow, add)
	case 2:
		gemmInt2x16AVX2(quads, a, aRow, b, c, cRow, add)
	case 3:
		gemmInt3x8AVX2(quads, a, aRow, b, c, cRow, add)
	case 4:
		gemmInt4x8AVX2(quads, a, aRow, b, c, cRow, add)
	case 5:
		gemmInt5x8AVX2(quads, a, aRow, b, c, cRow, add)
	default:
		gemmInt6x8AVX2(quads, a, aRow, b, c, cRow, add)
	}
}

func widenBulk(dst []int16, src []byte, signed bool, zero int32) (n int, sum int32) {
	if n = len(src) &^ 15; n == 0 || !hasAVX2 {
		return 0, 0
	}
	if signed {
		return n, widenSignedAVX2(&dst[0], &src[0], n, uint32(zero))
	}
	return n, widenUnsignedAVX2(&dst[0], &src[0], n, uint32(zero))
}
