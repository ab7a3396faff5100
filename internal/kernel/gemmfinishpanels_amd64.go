//go:build amd64 && !noasm

package kernel

// finishPanels computes everything in AVX2.
func (g *gemm) finishPanels(f GemmFinish) {
	p := finishedPanels{g, f}
	whole := g.m / gemmTall
	if whole > 0 {
		p.rows(0, gemmTall, whole)
	}
	if i := whole * gemmTall; i < g.m {
		p.rows(i, g.m-i, 1)
	}
}

// finishedPanels is a product that is finished in registers, in AVX2.
type finishedPanels struct {
	*gemm
	finish GemmFinish
}

// rows computes strips of rows from i on.
func (p finishedPanels) rows(i, rows, strips int) {
	// All strips of a panel in one call, with the bias in registers: the sums are neither read nor written again for
	// bias and bounds. All layers of MobileNetV2 on 224×224 pixels: 8.21 → 6.99 ms (AVX2, one thread).
	for j, wide := 0, finishWide(rows); j < p.n; j += wide {
		if j+wide > p.n {
			wide = GemmPanel
		}
		switch left := p.n - j; {
		case left >= wide:
			// The strips that prefetch are a call of their own, as their offsets are constants of a call.
			first := p.split(strips)
			p.tiles(tileShape{rows, wide}, i, j, first)
			if first < strips {
				p.tiles(tileShape{rows, wide}, i+first*rows, j, strips-first)
			}
		case left == gemmHalf && rows == gemmTall:
			p.half(i, j, strips)
		default:
			for s := range strips {
				p.edge(i+s*rows, j, rows)
			}
		}
	}
}

// finishWide is the number of columns of the largest tile of that many rows.
func finishWide(rows int) int {
	switch rows {
	case 1:
		return widestTile
	case 2, 3:
		return 2 * GemmPanel
	}
	return GemmPanel
}

// tiles computes strips of tiles inside c.
func (p finishedPanels) tiles(shape tileShape, i, j, strips int) {
	bias := &noBias[0]
	if p.finish.Bias != nil {
		bias = &p.finish.Bias[j]
	}
	p.call(shape, i, j, strips, &p.c[i*p.ldc+j], p.ldc, asInt(p.add), bias)
}

// half computes strips of half a panel: twice as many rows at once, if the layout of a allows.
func (p finishedPanels) half(i, j, strips int) {
	if pairs := strips / 2; pairs > 0 && p.a.Strip == gemmTall*p.a.Row {
		p.tiles(tileShape{2 * gemmTall, gemmHalf}, i, j, pairs)
		i, strips = i+2*gemmTall*pairs, strips%2
	}
	if strips > 0 {
		p.tiles(tileShape{gemmTall, gemmHalf}, i, j, strips)
	}
}

// edge computes a tile that exceeds c, in a buffer.
func (p finishedPanels) edge(i, j, rows int) {
	// In a buffer, as stores with masks are slow on some processors.
	var tile [gemmTall * GemmPanel]float32
	bias := noBias
	if p.finish.Bias != nil {
		copy(bias[:], p.finish.Bias[j:])
	}
	c := p.c[i*p.ldc+j:]
	for r := 0; r < rows && p.add; r++ {
		copy(tile[r*GemmPanel:], c[r*p.ldc:][:p.n-j])
	}
	p.call(tileShape{rows, GemmPanel}, i, j, 1, &tile[0], GemmPanel, asInt(p.add), &bias[0])
	for r := range rows {
		copy(c[r*p.ldc:][:p.n-j], tile[r*GemmPanel:])
	}
}

// call calls the function of the tile's shape.
func (p finishedPanels) call(shape tileShape, i, j, strips int, c *float32, ldc, add int, bias *float32) {
	a, b := &p.a.Data[i/gemmTall*p.a.Strip+i%gemmTall*p.a.Row], &p.b.Data[j/GemmPanel*p.b.Panel]
	aStrip := 4 * p.a.Strip * max(shape.rows/gemmTall, 1)
	k, aRow, aK, bK, bPanel, cRow, lo, hi := p.k, 4*p.a.Row, 4*p.a.K, 4*p.b.K, 4*p.b.Panel, 4*ldc, p.finish.Lo,
		p.finish.Hi
	switch shape {
	case tileShape{6, 16}:
		next := p.prefetch(i, j, GemmPanel)
		gemmFinish6x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi, next.at,
			next.lines)
	case tileShape{5, 16}:
		gemmFinish5x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{4, 16}:
		gemmFinish4x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{3, 16}:
		gemmFinish3x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{3, 32}:
		gemmFinish3x32AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{2, 16}:
		gemmFinish2x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{2, 32}:
		gemmFinish2x32AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{1, 16}:
		gemmFinish1x16AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{1, 64}:
		gemmFinish1x64AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	case tileShape{6, 8}:
		gemmFinish6x8AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	default:
		gemmFinish12x8AVX2(strips, k, a, aRow, aK, aStrip, b, bK, bPanel, c, cRow, add, bias, lo, hi)
	}
}
