//go:build amd64 && !noasm

package kernel

import "unsafe"

// packedAtOnce is the number of panels that copy their part of a row before the next row: longer contiguous reads, but
// not more write streams than the L1 cache has ways.
const packedAtOnce = 8

// bulk packs whole panels, and returns the number of steps of k and of columns done.
func (p *panelPack) bulk() (steps, cols int) {
	cols = p.n &^ (GemmPanel - 1)
	switch {
	case !hasAVX2 || cols == 0:
		return 0, 0
	case p.col == 1:
		for j := 0; j < cols; j += packedAtOnce * GemmPanel {
			panels := min(packedAtOnce, (cols-j)/GemmPanel)
			packRowsAVX2(&p.dst[j/GemmPanel*p.panel], 4*p.panel, &p.src[j], 4*p.row, p.k, panels)
		}
		return p.k, cols
	case p.row == 1 && p.k >= 4:
		steps = p.k &^ 3
		for j := 0; j < cols; j += GemmPanel {
			packColumnsAVX2(&p.dst[j/GemmPanel*p.panel], &p.src[j*p.col], 4*p.col, steps, 0)
		}
		return steps, cols
	}
	return 0, 0
}

// bulk packs strips of six rows, and returns the number of steps of k and of strips done.
func (p *stripPack) bulk() (steps, strips int) {
	if !hasAVX2 || p.m < p.part+stripPart {
		return 0, 0
	}
	strips = (p.m-p.part-stripPart)/p.high + 1
	strip := p.high * p.k
	switch {
	case p.row == 1:
		for s := 0; s < strips; s += packedAtOnce {
			n := min(packedAtOnce, strips-s)
			packSixesAVX2(&p.dst[s*strip+p.part], 4*strip, 4*p.high, &p.src[s*p.high+p.part], 4*p.high, 4*p.col, p.k, n)
		}
		return p.k, strips
	case p.col == 1 && p.k >= 4:
		steps = p.k &^ 3
		for s := range strips {
			packSixAVX2(&p.dst[s*strip+p.part], 4*p.high, &p.src[(s*p.high+p.part)*p.row], 4*p.row, steps)
		}
		return steps, strips
	}
	return 0, 0
}

// bulk packs whole quads of whole panels, and returns the number of steps of k and of columns done.
func (p *quadPack) bulk() (steps, cols int) {
	steps, cols = p.k&^(GemmQuad-1), p.n&^(GemmPanel-1)
	flip := uint32(p.flip) * 0x01010101
	switch {
	case !hasAVX2 || steps == 0 || cols == 0:
		return 0, 0
	case p.col == 1:
		for j := 0; j < cols; j += packedAtOnce * GemmPanel {
			panels := min(packedAtOnce, (cols-j)/GemmPanel)
			quadsAVX2(&p.dst[j/GemmPanel*p.panel], p.panel, &p.src[j], p.row, steps/GemmQuad, panels, flip)
		}
		return steps, cols
	case p.row == 1 && steps >= 4*GemmQuad:
		steps &^= 4*GemmQuad - 1
		for j := 0; j < cols; j += GemmPanel {
			packColumnsAVX2(asFloat(&p.dst[j/GemmPanel*p.panel]), asFloat(&p.src[j*p.col]), p.col, steps/GemmQuad, flip)
		}
		return steps, cols
	}
	return 0, 0
}

// asFloat is a pointer to the four bytes from b on; they are copied, not computed with.
func asFloat(b *byte) *float32 { return (*float32)(unsafe.Pointer(b)) }

func lessBulk(y []int32, v int32) (n int) {
	if n = whole(len(y)); n > 0 {
		lessAVX2(&y[0], n, uint32(v))
	}
	return n
}

func lessTimesBulk(y, x []int32, lift, times int32) (n int) {
	if n = whole(len(y)); n > 0 {
		lessTimesAVX2(&y[0], &x[0], n, uint32(lift), uint32(times))
	}
	return n
}
