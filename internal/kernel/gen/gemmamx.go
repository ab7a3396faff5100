package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// amxFamily is products of uint8 by int8 in tiles.
func amxFamily() {
	for _, t := range []amxTiles{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		t.emit()
	}
}

// amxTiles is the number of tiles of A, below each other, and of B, side by side. Sums are in the tiles from 0 on, row
// by row.
type amxTiles struct{ down, across int }

const (
	amxSide    = 16 // rows of a tile
	amxRow     = 64 // bytes of a row
	firstTileA = 4
	firstTileB = 6
	amxAhead   = 4096 // bytes from B to the line that it prefetches
)

func (t amxTiles) emit() {
	name := fmt.Sprintf("gemmTiles%dx%dAMX", t.down, t.across)
	function(name, "func(config *byte, strips, steps int, a *byte, aRow int, b *byte, bPanel int, c *int32, cRow "+
		"int, first *int32, firstRow int)",
		name+" stores a·b, plus first if it is not nil, for strips of tiles and steps of 64 of k; strides in bytes, "+
			"strips and steps > 0.")
	a, b := amxStrided{RSI, RDI, R8}, amxStrided{RBX, RCX, RDX}
	c, first := amxStrided{R9, R14, R10}, amxStrided{R11, R14, R12}
	// Physical registers, as instructions are bytes with the numbers of registers in them.
	steps := RAX
	load := func(name string, r GPPhysical) { Load(Param(name), r) }
	load("config", RAX)
	raw(tileConfig(number(RAX)), "LDTILECFG (AX)")
	load("aRow", a.stride)
	load("c", c.base)
	load("cRow", c.stride)
	load("first", first.base)
	load("firstRow", first.stride)
	// The tile registers of one strip have all sums of it; parameters are read again for the next strip, as registers
	// are few.
	Label("strip")
	load("steps", steps)
	load("a", a.base)
	load("b", b.base)
	a.below()
	MOVQ(b.base, b.second)
	ADDQ(parameter("bPanel"), b.second)
	MOVQ(U32(amxRow), b.stride)
	t.start(first)
	Label("step")
	t.multiply(a, b)
	for _, p := range []GPPhysical{a.base, a.second} {
		ADDQ(U32(amxRow), p)
	}
	for _, p := range []GPPhysical{b.base, b.second} {
		ADDQ(U32(amxSide*amxRow), p)
	}
	DECQ(steps)
	JNZ(LabelRef("step"))
	c.below()
	t.each(func(tile, r int, bytes int8) { storeTile(tile, c.row(r), c.stride, bytes) })
	t.advance(a.stride, parameter("a"))
	t.advance(c.stride, c.base)
	t.advance(first.stride, first.base)
	DECQ(parameter("strips"))
	JNZ(LabelRef("strip"))
	raw(tileRelease(), "TILERELEASE")
	RET()
}

// amxStrided is rows in memory: the first, that of the second tile, and their distance.
type amxStrided struct{ base, second, stride GPPhysical }

// below sets second to the rows after those of the first tile.
func (s amxStrided) below() {
	MOVQ(s.stride, s.second)
	SHLQ(U8(4), s.second)
	ADDQ(s.base, s.second)
}

func (s amxStrided) row(tile int) GPPhysical { return []GPPhysical{s.base, s.second}[tile] }

// each calls f with each tile of sums, its row of tiles and the offset of its columns.
func (t amxTiles) each(f func(tile, r int, bytes int8)) {
	for r := range t.down {
		for x := range t.across {
			f(r*t.across+x, r, int8(x*amxRow))
		}
	}
}

// start sets the sums to first or to 0.
func (t amxTiles) start(first amxStrided) {
	TESTQ(first.base, first.base)
	JZ(LabelRef("zero"))
	first.below()
	t.each(func(tile, r int, bytes int8) { loadTile(tile, first.row(r), first.stride, bytes) })
	JMP(LabelRef("step"))
	Label("zero")
	t.each(func(tile, _ int, _ int8) { raw(tileZero(tile), "TILEZERO TMM%d", tile) })
}

// multiply adds the products of one step, each as soon as its tiles are loaded. One prefetched line for each tile of B
// makes the hardware read ahead in the next page; prefetching all lines was slower.
func (t amxTiles) multiply(a, b amxStrided) {
	bRows := []GPPhysical{b.base, b.second}
	for x := range t.across {
		loadTile(firstTileB+x, bRows[x], b.stride, 0)
		PREFETCHT1(Mem{Base: bRows[x], Disp: amxAhead})
		for r := range t.down {
			if x == 0 {
				loadTile(firstTileA+r, a.row(r), a.stride, 0)
			}
			sum := r*t.across + x
			raw(tileProduct(sum, firstTileA+r, firstTileB+x), "TDPBUSD TMM%d, TMM%d, TMM%d", firstTileB+x,
				firstTileA+r, sum)
		}
	}
}

// advance adds the distance of strips.
func (t amxTiles) advance(stride GPPhysical, to Op) {
	IMUL3Q(U8(t.down*amxSide), stride, R14)
	ADDQ(R14, to)
}
