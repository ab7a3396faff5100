//go:build amd64 && !noasm

package kernel

import "golang.org/x/sys/cpu"

var hasVNNI = hasAVX512 && cpu.X86.HasAVX512VNNI

// gemmIntWidth is 1 for the twin too, which needs no more.
func gemmIntWidth() int {
	// The twin multiplies bytes as well, so that -tags noasm tests this path.
	if hasAVX2 && !hasVNNI {
		return 2
	}
	return 1
}

// bulk computes everything and reports true if the CPU has the instructions.
func (g *gemmInt) bulk() bool {
	switch {
	// In the order of speed. Tiles have to be configured, which few rows or steps do not make up for.
	case hasAMX && g.m >= amxLeastRows && g.k >= amxLeastK:
		g.byTiles()
	case hasVNNI:
		g.byBytes()
	case hasAVX2 && g.width == 1:
		g.copyFirst()
		g.byPairs()
	case hasAVX2:
		g.copyFirst()
		g.byWords()
	default:
		return false
	}
	return true
}

// byWords multiplies int16 by int8. A panel stays in the L1 cache during all rows.
func (g *gemmInt) byWords() {
	whole := g.m / gemmTall * gemmTall
	for j := 0; j < g.n; j += GemmPanel {
		end := min(g.n, j+GemmPanel)
		g.strips(0, whole, gemmTall, j, end)
		g.strips(whole, g.m, g.m-whole, j, end)
	}
}

// strips computes the rows from i to down, high at a time, of a panel: half of it at once, all if there are few rows.
func (g *gemmInt) strips(i, down, high, j, end int) {
	if i == down {
		return
	}
	wide := GemmPanel / 2
	if high <= 2 {
		wide = GemmPanel
	}
	for ; j < end; j += wide {
		if j+wide <= g.n {
			g.multiplyWords(i, j, high, (down-i)/high, &g.c[i*g.ldc+j], g.ldc, asInt(g.first != nil))
			continue
		}
		var tile [gemmTall * GemmPanel]int32
		for i := i; i < down; i += high {
			g.multiplyWords(i, j, high, 1, &tile[0], wide, 0)
			takeTile(g.c[i*g.ldc+j:], g.ldc, tile[:], wide, high, g.n-j, g.first != nil)
		}
	}
}

// multiplyWords calls by name, like multiply of float32.
func (g *gemmInt) multiplyWords(i, j, rows, strips int, c *int32, ldc, add int) {
	a, b := &g.a[i*g.lda], &g.b[j/GemmPanel*g.panel+j%GemmPanel*GemmQuad]
	quads, aRow, cRow := g.k/GemmQuad, g.lda, 4*ldc
	switch rows {
	case 1:
		gemmInt1x16AVX2(strips, quads, a, aRow, b, c, cRow, add)
	case 2:
		gemmInt2x16AVX2(strips, quads, a, aRow, b, c, cRow, add)
	case 3:
		gemmInt3x8AVX2(strips, quads, a, aRow, b, c, cRow, add)
	case 4:
		gemmInt4x8AVX2(strips, quads, a, aRow, b, c, cRow, add)
	case 5:
		gemmInt5x8AVX2(strips, quads, a, aRow, b, c, cRow, add)
	default:
		gemmInt6x8AVX2(strips, quads, a, aRow, b, c, cRow, add)
	}
}

func widenBulk(dst []byte, to int, src []byte, from, n int, signed bool, zero int32, sums []int32) (done int) {
	if done = whole(n); done == 0 {
		return 0
	}
	if signed {
		widenSignedAVX2(&dst[0], to, &src[0], from, len(sums), done, uint32(zero), &sums[0])
	} else {
		widenUnsignedAVX2(&dst[0], to, &src[0], from, len(sums), done, uint32(zero), &sums[0])
	}
	return done
}

func flipBulk(dst, src []byte, flip byte) (n int, sum int32) {
	if n = len(src) &^ 31; n == 0 || !hasAVX2 {
		return 0, 0
	}
	return n, int32(flipAVX2(&dst[0], &src[0], n, uint32(flip)*0x01010101))
}

func quadSumsBulk(sums []int32, b []byte, panel, k int) (n int) {
	if n = len(sums) &^ (GemmPanel - 1); !hasAVX2 {
		return 0
	}
	for j := 0; j < n; j += GemmPanel {
		quadSumsAVX2(&sums[j], &b[j/GemmPanel*panel], k/GemmQuad)
	}
	return n
}
