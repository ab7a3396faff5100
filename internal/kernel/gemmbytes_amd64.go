//go:build amd64 && !noasm

package kernel

// byBytes multiplies uint8 by int8. There are tiles of 12, 8, 4 and 1 rows: the last one overlaps rows of the preceding
// one, and only its other rows are stored.
func (g *gemmInt) byBytes() {
	wide := 2 * GemmPanel
	// One row has four panels, as in float32: a sum waits for the one before it.
	if g.m < 4 {
		wide = 4 * GemmPanel
	}
	for j := 0; j < g.n; j += wide {
		if j+wide-GemmPanel >= g.n {
			wide = GemmPanel
		}
		for i := 0; i < g.m; {
			high := g.high(g.m - i)
			g.bytes(min(i, g.m-high), i, j, high, wide)
			i += high
		}
	}
}

// high is the number of rows of the least tile that has all of the rows that are left, or of the tallest one.
func (g *gemmInt) high(left int) int {
	switch {
	case g.m < 4:
		return 1
	case left > 8 && g.m >= 12:
		return 12
	case left > 4 && g.m >= 8:
		return 8
	}
	return 4
}

// bytes computes a tile that starts at row top and is stored from row i on, through a buffer if that is not all of it.
func (g *gemmInt) bytes(top, i, j, rows, wide int) {
	if top == i && j+wide <= g.n {
		var first *int32
		if g.first != nil {
			first = &g.first[i*g.ldFirst+j]
		}
		g.multiplyBytes(i, j, rows, wide, &g.c[i*g.ldc+j], g.ldc, first)
		return
	}
	// first is added when the tile is stored, as it may have fewer columns than the tile.
	var tile [12 * 2 * GemmPanel]int32
	g.multiplyBytes(top, j, rows, wide, &tile[0], wide, nil)
	g.take(i, j, tile[(i-top)*wide:], wide, rows-(i-top), min(wide, g.n-j))
}

// take stores the first rows and columns of a tile, plus first, from element (i, j) on.
func (g *gemmInt) take(i, j int, tile []int32, wide, rows, cols int) {
	for r := range rows {
		to, from := g.c[(i+r)*g.ldc+j:][:cols], tile[r*wide:][:cols]
		if g.first == nil {
			copy(to, from)
			continue
		}
		first := g.first[(i+r)*g.ldFirst+j:][:cols]
		for x, v := range from {
			to[x] = first[x] + v
		}
	}
}

// multiplyBytes calls by name, like multiply of float32.
func (g *gemmInt) multiplyBytes(i, j, rows, wide int, c *int32, ldc int, first *int32) {
	a, b := &g.a[i*g.lda], &g.b[j/GemmPanel*g.panel]
	const aK, bK = GemmQuad, GemmQuad * GemmPanel
	k, aRow, bPanel, cRow, firstRow := g.k/GemmQuad, g.lda, g.panel, 4*ldc, 4*g.ldFirst
	switch (tileShape{rows, wide}) {
	case tileShape{1, 16}:
		gemmBytes1x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{1, 64}:
		gemmBytes1x64AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{4, 16}:
		gemmBytes4x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{4, 32}:
		gemmBytes4x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{8, 16}:
		gemmBytes8x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{8, 32}:
		gemmBytes8x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	case tileShape{12, 16}:
		gemmBytes12x16AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow)
	default:
		// A line every four steps of the next two panels: the first strip of rows waited for weights from memory. 128
		// rows: 490 → 770 GOP/s (one core of an Intel Xeon with AVX-512).
		ahead := nextPanels(i/rows, 2*g.panel, 64*(k/4))
		gemmBytes12x32AVX512(k, a, aRow, aK, b, bK, bPanel, c, cRow, first, firstRow, ahead)
	}
}

// asInt is 1 for true.
func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// takeTile stores the first rows and columns of a tile in c, or adds them.
func takeTile[T int32 | float32](c []T, ldc int, tile []T, wide, rows, cols int, add bool) {
	for r := range rows {
		to, from := c[r*ldc:][:cols], tile[r*wide:][:cols]
		if !add {
			copy(to, from)
			continue
		}
		for x, v := range from {
			to[x] += v
		}
	}
}

// nextPanels is the offset from B of the lines that a strip prefetches: its part of the next two panels, size bytes
// after the first line of these; 0 if the strips before prefetch all of them.
func nextPanels(strip, size, part int) int {
	if strip*part >= size {
		return 0
	}
	return size + strip*part
}
