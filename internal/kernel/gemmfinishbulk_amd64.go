//go:build amd64 && !noasm

package kernel

import "math"

// widestTile is the number of columns of the widest tile that reads a bias. Functions read that many, so noBias has
// them.
const widestTile = 4 * GemmPanel

// noBias changes no sum, not even -0.
var noBias = negativeZeros()

func negativeZeros() (z [widestTile]float32) {
	for i := range z {
		z[i] = float32(math.Copysign(0, -1))
	}
	return z
}

// finishBulk computes everything and reports true if the CPU has the instructions.
func (g *gemm) finishBulk(f GemmFinish) bool {
	switch {
	case hasAVX512:
		g.finishMasked(f)
	case hasFMA:
		g.finishPanels(f)
	default:
		return false
	}
	return true
}

// finishMasked computes everything in AVX-512. Columns that are outside of c are masked.
func (g *gemm) finishMasked(f GemmFinish) {
	high, whole := gemmRows(), g.m/gemmRows()
	for j := 0; j < g.n; j += 2 * GemmPanel {
		t := finishedTile{gemm: g, j: j, cols: min(2*GemmPanel, g.n-j), bias: &noBias[0], lo: f.Lo, hi: f.Hi}
		if f.Bias != nil {
			t.bias = &f.Bias[j]
		}
		first := g.split(whole)
		if first > 0 {
			t.rows(0, high, first)
		}
		if first < whole {
			t.rows(first*high, high, whole-first)
		}
		// The last rows have tiles of 8, 4, 2 and 1.
		for i, rows := whole*high, 8; i < g.m; rows /= 2 {
			if i+rows <= g.m {
				t.rows(i, rows, 1)
				i += rows
			}
		}
	}
}

// A finishedTile is some columns of the result.
type finishedTile struct {
	*gemm
	j, cols int
	bias    *float32
	lo, hi  float32
}

// rows computes strips of rows from i on.
func (t *finishedTile) rows(i, rows, strips int) {
	high := gemmRows()
	a, b := &t.a.Data[i/high*t.a.Strip+i%high*t.a.Row], &t.b.Data[t.j/GemmPanel*t.b.Panel]
	c, add, bias, lo, hi := &t.c[i*t.ldc+t.j], asInt(t.add), t.bias, t.lo, t.hi
	aRow, aK, aStrip, bK, bPanel, cRow := 4*t.a.Row, 4*t.a.K, 4*t.a.Strip, 4*t.b.K, 4*t.b.Panel, 4*t.ldc
	// Masks of AVX-512 cost nothing, so the last columns need no buffer.
	mask := uint32(uint64(1)<<t.cols - 1)
	m0, m1 := uint16(mask), uint16(mask>>GemmPanel)
	wide := GemmPanel
	if t.cols > GemmPanel {
		wide = 2 * GemmPanel
	}
	next := t.prefetch(i, t.j, wide)
	switch (tileShape{rows, wide}) {
	case tileShape{12, 16}:
		gemmFinish12x16AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{12, 32}:
		gemmFinish12x32AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1,
			next.at, next.second, next.lines)
	case tileShape{8, 16}:
		gemmFinish8x16AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{8, 32}:
		gemmFinish8x32AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1,
			next.at, next.second, next.lines)
	case tileShape{4, 16}:
		gemmFinish4x16AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{4, 32}:
		gemmFinish4x32AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{2, 16}:
		gemmFinish2x16AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{2, 32}:
		gemmFinish2x32AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	case tileShape{1, 16}:
		gemmFinish1x16AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	default:
		gemmFinish1x32AVX512(strips, t.k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, m0, m1)
	}
}
