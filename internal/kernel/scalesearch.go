package kernel

import "math"

// BlockCols is the number of columns of a block: two vectors.
const BlockCols = 16

// LoadBlock copies to dst, rows of BlockCols, those that start stride elements apart in src, and widens lo and hi,
// which are not NaN, by the columns' elements. A zero does not widen beyond the zero of the other sign; NaN is ignored.
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

// A BlockGrid is the search space of SearchBlock: integers from Lo to Hi, with the middle of a column's range, mid,
// quantized to Center; symmetric quantization has a Center and mids of 0, and zero points of 0.
type BlockGrid struct {
	Lo, Hi, Center float32
	Factors        []float32 // of base: the steps that are tried
}

// SearchBlock finds a scale and a zero point for each column of x, rows of BlockCols. Among the steps base·factor, each
// with the zero point nearest to mid's, it selects the one whose quantized values q have the least squared error with
// their optimal scale, that is the largest score (Σqx)²/Σq². The returned scale is not the optimal one, Σqx/Σq², which
// shrinks weights on average, but Σx²/Σqx, which does not. Columns without a score above best are unchanged. Values
// must be finite and bases not zero.
func SearchBlock(scale, zero, best *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32, g BlockGrid) {
	checkRows(len(x), BlockCols)
	if len(x) == 0 || len(g.Factors) == 0 {
		panic("kernel: SearchBlock of an empty block")
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

// try updates the columns in which the step of factor f is better.
func (g *BlockGrid) try(f float32, scale, zero, best *[BlockCols]float32, x []float32, base, mid,
	squares *[BlockCols]float32) {
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

// nearest is the integer nearest to v, half to even, clamped to lo and hi.
func nearest(v, lo, hi float32) float32 {
	v = min(max(v, lo), hi)
	return float32(math.RoundToEven(float64(v)))
}

// RoundBlock is QuantizeCols for rows of BlockCols. Rows of dst start stride bytes apart.
func RoundBlock(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32, c IntRange) {
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
