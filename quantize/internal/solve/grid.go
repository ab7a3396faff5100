package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Grid is what weights are rounded to: (code - zero)·scale, with one scale, and unless it is symmetric one zero point,
// for each Block rows of a column. Codes are from Low to High.
type Grid struct {
	Low, High int32
	Symmetric bool
	Block     int
	Half      bool // scales, and real zero points, are float16 numbers
}

// Codes are rounded weights: Code is K×N, a byte for each, and Scale and Zero are blocks×N.
type Codes struct {
	K, N  int
	Grid  Grid
	Code  []byte
	Scale []float32
	Zero  []int32
	Point []float32 // instead of Zero, where zero points may be any numbers; else nil
}

func newCodes(k, n int, g Grid) *Codes {
	blocks := (k + g.Block - 1) / g.Block
	return &Codes{K: k, N: n, Grid: g, Code: make([]byte, k*n), Scale: make([]float32, blocks*n), Zero: make([]int32, blocks*n)}
}

// Weight is the number that stands for element (i, j).
func (c *Codes) Weight(i, j int) float32 {
	code := int32(c.Code[i*c.N+j])
	if c.Grid.Low < 0 {
		code = int32(int8(code))
	}
	at := i/c.Grid.Block*c.N + j
	return float32(code-c.Zero[at]) * c.Scale[at]
}

// Weights stores the numbers that stand for all elements, row by row.
func (c *Codes) Weights(p gemm.Pool, dst []float32) {
	p.For(c.K, func(i int) {
		at := i / c.Grid.Block * c.N
		scale, zero, codes := c.Scale[at:][:c.N], c.Zero[at:][:c.N], c.Code[i*c.N:][:c.N]
		row := dst[i*c.N:][:c.N]
		for j, b := range codes {
			code := int32(b)
			if c.Grid.Low < 0 {
				code = int32(int8(b))
			}
			row[j] = float32(code-zero[j]) * scale[j]
		}
	})
}

// round is the code nearest to x, less the zero point.
func (g Grid) round(x, inverse float32, zero int32) int32 {
	v := math.RoundToEven(float64(x * inverse))
	return int32(min(max(v, float64(g.Low-zero)), float64(g.High-zero)))
}

// codes is what codes are from and to.
func (g Grid) codes() kernel.Codes { return kernel.Codes{Lo: g.Low, Hi: g.High} }

// middle is the zero point of symmetric grids, and of weights that are all zero.
func (g Grid) middle() int32 { return (g.Low + g.High + 1) / 2 }

// over is the grid over a range, which is made to hold 0. Of a symmetric one that goes further down than up, the end that
// is further out is the lowest code, by a negative scale if need be.
func (g Grid) over(low, high float32) (scale float32, zero int32) {
	low, high = min(low, 0), max(high, 0)
	if !g.Symmetric {
		scale = (high - low) / float32(g.High-g.Low)
		zero = g.Low + int32(math.RoundToEven(float64(-low/scale)))
		return scale, min(max(zero, g.Low), g.High)
	}
	zero = g.middle()
	down, up := float32(g.Low-zero), float32(g.High-zero)
	if -low >= high {
		return low / down, zero
	}
	if -down > up {
		return high / down, zero
	}
	return high / up, zero
}
