//go:build amd64 && !noasm

package kernel

// bulk computes everything and reports true if the CPU has the instructions.
func (g *gemmAt) bulk() bool {
	if !hasFMA {
		return false
	}
	for j := 0; j < g.n; j += g.wide(j) {
		if g.n-j < GemmPanel {
			g.edge(j)
			continue
		}
		g.columns(j, g.wide(j), g.c[j:], g.ldc, g.bias(j))
	}
	return true
}

// wide is the number of columns that are computed at once from column j on.
func (g *gemmAt) wide(j int) int {
	if hasAVX512 && g.m >= 2*GemmAtRows && g.n-j >= 2*GemmPanel {
		return 2 * GemmPanel
	}
	return GemmPanel
}

func (g *gemmAt) bias(j int) *float32 {
	if g.finish.Bias == nil {
		return &noBias[0]
	}
	return &g.finish.Bias[j]
}

// columns computes all rows of some columns. The last strip overlaps the one before it.
func (g *gemmAt) columns(j, wide int, c []float32, ldc int, bias *float32) {
	high := GemmAtRows
	if hasAVX512 && g.m >= 2*GemmAtRows {
		high = 2 * GemmAtRows
	}
	g.strips(0, high, g.m/high, j, wide, c, ldc, bias)
	if g.m%high > 0 {
		g.strips(g.m-high, high, 1, j, wide, c, ldc, bias)
	}
}

// strips computes strips of rows from i on.
func (g *gemmAt) strips(i, high, strips, j, wide int, c []float32, ldc int, bias *float32) {
	x, at, b, to, k := &g.x[i*g.row], &g.at[0], &g.panel(j)[0], &c[i*ldc], len(g.at)
	row, bPanel, cRow, lo, hi := 4*g.row, 4*GemmPanel*k, 4*ldc, g.finish.Lo, g.finish.Hi
	switch (tileShape{high, wide}) {
	case tileShape{6, 16}:
		gemmAt6x16AVX2(strips, x, row, at, k, b, bPanel, to, cRow, bias, lo, hi)
	case tileShape{12, 16}:
		gemmAt12x16AVX512(strips, x, row, at, k, b, bPanel, to, cRow, bias, lo, hi)
	default:
		gemmAt12x32AVX512(strips, x, row, at, k, b, bPanel, to, cRow, bias, lo, hi)
	}
}

// edge computes the columns from j on, fewer than a panel, in a buffer.
func (g *gemmAt) edge(j int) {
	var tile [GemmAtRows * GemmPanel]float32
	bias := noBias
	if g.finish.Bias != nil {
		copy(bias[:], g.finish.Bias[j:])
	}
	for i := 0; i < g.m; i += GemmAtRows {
		i := min(i, g.m-GemmAtRows)
		strip := gemmAt{x: g.x[i*g.row:], row: g.row, at: g.at, b: g.panel(j), m: GemmAtRows, n: GemmPanel,
			finish: g.finish}
		strip.strips(0, GemmAtRows, 1, 0, GemmPanel, tile[:], GemmPanel, &bias[0])
		for r := range GemmAtRows {
			copy(g.c[(i+r)*g.ldc+j:][:g.n-j], tile[r*GemmPanel:])
		}
	}
}
