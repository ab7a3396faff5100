package kernel

import "fmt"

// GemmAtRows is the minimum number of rows of GemmAt.
const GemmAtRows = 6

// GemmAt stores the product of m rows of x and n columns of b as rows of c that are ldc elements apart: sums over k of
// x[i*row+at[k]] · b[(j/16*len(at)+k)*16+j%16], finished like those of GemmFinished. So windows over an image are
// multiplied where they are. Sums are those of GemmFloat.
func GemmAt(c []float32, ldc int, x []float32, row int, at []int64, b []float32, m, n int, f GemmFinish) {
	if m < GemmAtRows || row < 0 || ldc < 0 || len(at) == 0 {
		panic(fmt.Sprintf("kernel: %d rows of %d products, %d and %d elements apart", m, len(at), row, ldc))
	}
	if n <= 0 {
		return
	}
	within("c", len(c), (m-1)*ldc+n)
	within("b", len(b), (n+GemmPanel-1)/GemmPanel*GemmPanel*len(at))
	if f.Bias != nil {
		checkLen("bias", len(f.Bias), n)
	}
	for _, off := range at {
		if off < 0 {
			panic("kernel: negative offset")
		}
		within("x", len(x), (m-1)*row+int(off)+1)
	}
	g := gemmAt{c, ldc, x, row, at, b, m, n, f}
	if !g.bulk() {
		g.plain()
	}
}

// gemmAt is one call of GemmAt.
type gemmAt struct {
	c      []float32
	ldc    int
	x      []float32
	row    int
	at     []int64
	b      []float32
	m, n   int
	finish GemmFinish
}

// panel is that of columns from j on.
func (g *gemmAt) panel(j int) []float32 { return g.b[j*len(g.at):] }

// plain is the twin, with rounded products.
func (g *gemmAt) plain() {
	for i := range g.m {
		row := g.c[i*g.ldc:][:g.n]
		for j := 0; j < g.n; j += GemmPanel {
			sums, b := row[j:min(j+GemmPanel, g.n)], g.panel(j)
			clear(sums)
			for k, off := range g.at {
				v := g.x[i*g.row+int(off)]
				for j, w := range b[k*GemmPanel:][:len(sums)] {
					sums[j] += float32(v * w)
				}
			}
		}
		if g.finish.Bias != nil {
			Add(row, row, g.finish.Bias)
		}
		Clip(row, row, g.finish.Lo, g.finish.Hi)
	}
}
