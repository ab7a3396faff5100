package kernel

import "math"

// BlockCols is how many columns a block of a tile has: two vectors.
const BlockCols = 16

// LoadBlock copies to dst, rows of BlockCols, those that begin stride elements apart in src, and widens lo and hi, which are
// numbers, by the columns' elements. A zero does not widen beyond the zero of the other sign, nor does NaN.
func LoadBlock(dst []float32, lo, hi *[BlockCols]float32, src []float32, stride int) {
	checkRows(len(dst), BlockCols)
	rows := len(dst) / BlockCols
	if rows == 0 {
		return
	}
	within("src", len(src), (rows-1)*stride+BlockCols)
	if !loadBlockBulk(dst, lo, hi, src, stride) {
		loadBlockGo(dst, lo, hi, src, stride)
	}
}

func loadBlockGo(dst []float32, lo, hi *[BlockCols]float32, src []float32, stride int) {
	for i := range len(dst) / BlockCols {
		row := src[i*stride:][:BlockCols]
		copy(dst[i*BlockCols:], row)
		for j, v := range row {
			if v < lo[j] {
				lo[j] = v
			}
			if v > hi[j] {
				hi[j] = v
			}
		}
	}
}

// A BlockGrid is what SearchBlock tries: integers of Lo to Hi stand for values, and the middle of a column's range, mid, is
// put at Center; symmetric codes have a Center and mids of 0, and zero points of 0.
type BlockGrid struct {
	Lo, Hi, Center float32
	Factors        []float32 // of base: the steps that are tried
}

// SearchBlock finds a scale and a zero point for each column of x, rows of BlockCols: of the steps base·factor, each with
// the zero point nearest to where mid should be, it takes the one whose integers q would, with the scale that suits them
// best, leave the least squared error: the one with the largest score, (Σqx)²/Σq². The scale that goes with them is not
// that one, Σqx/Σq², which makes weights smaller on the whole, but Σx²/Σqx, which does not. What scores no better than
// best stays as it is. Values must be finite and bases not zero.
func SearchBlock(scale, zero, best *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32, g BlockGrid) {
	checkRows(len(x), BlockCols)
	if len(x) == 0 || len(g.Factors) == 0 {
		panic("kernel: SearchBlock of nothing")
	}
	if !searchBlockBulk(scale, zero, best, x, base, mid, g) {
		searchBlockGo(scale, zero, best, x, base, mid, g)
	}
}

func searchBlockGo(scale, zero, best *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32, g BlockGrid) {
	var squares [BlockCols]float32
	for i, v := range x {
		squares[i%BlockCols] += float32(v * v)
	}
	for _, f := range g.Factors {
		g.try(f, scale, zero, best, x, base, mid, &squares)
	}
}

// try keeps what the step of factor f gives in the columns where that is better.
func (g *BlockGrid) try(f float32, scale, zero, best *[BlockCols]float32, x []float32, base, mid, squares *[BlockCols]float32) {
	var inv, at, lo, hi, qq, qx [BlockCols]float32
	for j := range inv {
		inv[j] = 1 / float32(base[j]*f)
		at[j] = nearest(g.Center-float32(mid[j]*inv[j]), g.Lo, g.Hi)
		lo[j], hi[j] = g.Lo-at[j], g.Hi-at[j]
	}
	for ; len(x) > 0; x = x[BlockCols:] {
		for j, v := range x[:BlockCols] {
			q := nearest(float32(v*inv[j]), lo[j], hi[j])
			qq[j] += float32(q * q)
			qx[j] += float32(q * v)
		}
	}
	for j := range best {
		if score := float32(qx[j]*qx[j]) / qq[j]; score > best[j] {
			scale[j], zero[j], best[j] = squares[j]/qx[j], at[j], score
		}
	}
}

// nearest is the integer nearest to v, half to even, within integers lo and hi.
func nearest(v, lo, hi float32) float32 {
	v = min(max(v, lo), hi)
	return float32(math.RoundToEven(float64(v)))
}

// RoundBlock is QuantizeCols for rows of BlockCols. Rows of dst begin stride bytes apart.
func RoundBlock(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32, c Codes) {
	c.check()
	checkRows(len(x), BlockCols)
	rows := len(x) / BlockCols
	if rows == 0 {
		return
	}
	within("dst", len(dst), (rows-1)*stride+BlockCols)
	if roundBlockBulk(dst, stride, x, scale, zero, c) {
		return
	}
	for i := range rows {
		quantizeColsGo(dst[i*stride:][:BlockCols], x[i*BlockCols:][:BlockCols], scale[:], zero[:], c)
	}
}
