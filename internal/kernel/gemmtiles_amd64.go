//go:build amd64 && !noasm

package kernel

import "golang.org/x/sys/cpu"

// hasAMX reports whether the CPU multiplies bytes in tiles, and the system lets this process do so.
var hasAMX = hasVNNI && cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8 && permitTiles()

// The largest tile of AMX: 16 rows of 64 bytes, which are 64 elements of A, four of each of 16 columns of B, or 16
// sums.
const (
	amxRows  = 16
	amxBytes = 64
)

// The first tiles of A and B; sums are in those from 0 on, row by row.
const (
	amxA = 4
	amxB = 6
)

// The least rows and steps of k for which tiles, which have to be configured, are faster than VPDPBUSD.
const (
	amxLeastRows = 5
	amxLeastK    = 2 * amxBytes
)

// tileConfig is the operand of LDTILECFG.
type tileConfig struct {
	palette byte
	_       [15]byte   // the first row to continue at is 0
	bytes   [16]uint16 // of a row
	rows    [16]byte
}

// byTiles multiplies whole steps of 64 elements, of which there is at least one, by AMX, and the others by VPDPBUSD.
func (g *gemmInt) byTiles() {
	steps, full := g.k/amxBytes, g.m/(2*amxRows)*(2*amxRows)
	for j := 0; j < g.n; j += 2 * GemmPanel {
		g.tiles(0, full, j, steps)
		g.tiles(full, g.m, j, steps)
	}
	// Fewer than 64 elements of k are left, which VPDPBUSD adds to the same sums.
	if whole := steps * amxBytes; whole < g.k {
		(&gemmInt{g.c, g.ldc, g.c, g.ldc, g.a[whole:], g.lda, g.width, g.b[whole*GemmPanel:], g.panel, g.m, g.n,
			g.k - whole}).byBytes()
	}
}

// tiles computes the rows from i to down, in strips of 32 or in a smaller one, and up to 32 columns from j on.
func (g *gemmInt) tiles(i, down, j, steps int) {
	if i == down {
		return
	}
	// 2×2 tiles, so that each tile of A and B that is loaded is multiplied twice. 128×768×768: 71 to 77 µs, VPDPBUSD
	// 207 (one core, weights in the L2 cache).
	high, wide := min(down-i, 2*amxRows), min(g.n-j, 2*GemmPanel)
	config, shape := newTileConfig(high, wide)
	var first *int32
	firstRow := 0
	if g.first != nil {
		first, firstRow = &g.first[i*g.ldFirst+j], 4*g.ldFirst
	}
	multiplyTiles(shape, &config, (down-i)/high, steps, &g.a[i*g.lda], g.lda, &g.b[j/GemmPanel*g.panel], g.panel,
		&g.c[i*g.ldc+j], 4*g.ldc, first, firstRow)
}

// newTileConfig is the configuration of the tiles of a strip of high rows and wide columns.
func newTileConfig(high, wide int) (c tileConfig, shape tileShape) {
	c.palette = 1
	shape = tileShape{(high + amxRows - 1) / amxRows, (wide + GemmPanel - 1) / GemmPanel}
	// The configuration limits the last rows and columns, so that no buffer is needed at the edges.
	for x := range shape.cols {
		bytes := uint16(4 * min(wide-x*GemmPanel, GemmPanel))
		c.rows[amxB+x], c.bytes[amxB+x] = amxRows, bytes
		for r := range shape.rows {
			rows := byte(min(high-r*amxRows, amxRows))
			c.rows[amxA+r], c.bytes[amxA+r] = rows, amxBytes
			c.rows[r*shape.cols+x], c.bytes[r*shape.cols+x] = rows, bytes
		}
	}
	return c, shape
}

// multiplyTiles calls by name, like multiply of float32.
func multiplyTiles(shape tileShape, config *tileConfig, strips, steps int, a *byte, aRow int, b *byte, bPanel int,
	c *int32, cRow int, first *int32, firstRow int) {
	switch shape {
	case tileShape{1, 1}:
		gemmTiles1x1AMX(&config.palette, strips, steps, a, aRow, b, bPanel, c, cRow, first, firstRow)
	case tileShape{1, 2}:
		gemmTiles1x2AMX(&config.palette, strips, steps, a, aRow, b, bPanel, c, cRow, first, firstRow)
	case tileShape{2, 1}:
		gemmTiles2x1AMX(&config.palette, strips, steps, a, aRow, b, bPanel, c, cRow, first, firstRow)
	default:
		gemmTiles2x2AMX(&config.palette, strips, steps, a, aRow, b, bPanel, c, cRow, first, firstRow)
	}
}
