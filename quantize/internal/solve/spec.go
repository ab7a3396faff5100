package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Spec is a blockwise quantization: real = (q - zero point)·scale, with one scale and, unless symmetric, one zero
// point per block of Block rows of a column. Quantized values q are from Low to High.
type Spec struct {
	Low, High int32
	Symmetric bool
	Block     int
	// Error feedback along columns: the inputs have a common mean, which multiplies the sum of a column's errors.
	Feedback bool
	Half     bool // scales, and real zero points, are stored as float16
}

// Quantized is quantized weights: Values is K×N, one byte per value; Scale and Zero are blocks×N.
type Quantized struct {
	K, N   int
	Spec   Spec
	Values []byte
	Scale  []float32
	Zero   []int32
	Point  []float32 // real zero points, instead of Zero; else nil

	Feedback *Feedback // of the rows above and below, where the matrix is a part of a larger one; else nil
}

// Feedback is error feedback along columns that goes on from one part of the rows of a matrix to the next one.
type Feedback struct {
	carry []columns // sums of errors, for all tiles of a row
	Below int       // rows of the matrix below this part
}

func newQuantized(k, n int, g Spec) *Quantized {
	blocks := (k + g.Block - 1) / g.Block
	return &Quantized{K: k, N: n, Spec: g, Values: make([]byte, k*n), Scale: make([]float32, blocks*n),
		Zero: make([]int32, blocks*n)}
}

// SetColumns copies the columns of p, of the same rows, to those of c from first on.
func (c *Quantized) SetColumns(first int, p *Quantized) {
	for i := range c.K {
		copy(c.Values[i*c.N+first:], p.Values[i*p.N:][:p.N])
	}
	for i := range len(c.Scale) / c.N {
		copy(c.Scale[i*c.N+first:], p.Scale[i*p.N:][:p.N])
		copy(c.Zero[i*c.N+first:], p.Zero[i*p.N:][:p.N])
	}
}

// Weight is the dequantized element (i, j).
func (c *Quantized) Weight(i, j int) float32 {
	value := int32(c.Values[i*c.N+j])
	if c.Spec.Low < 0 {
		value = int32(int8(value))
	}
	at := i/c.Spec.Block*c.N + j
	return float32(value-c.Zero[at]) * c.Scale[at]
}

// Weights stores all dequantized elements in dst, row-major.
func (c *Quantized) Weights(p gemm.Pool, dst []float32) {
	p.For(c.K, func(i int) {
		at := i / c.Spec.Block * c.N
		scale, zero, quantized := c.Scale[at:][:c.N], c.Zero[at:][:c.N], c.Values[i*c.N:][:c.N]
		row := dst[i*c.N:][:c.N]
		for j, b := range quantized {
			value := int32(b)
			if c.Spec.Low < 0 {
				value = int32(int8(b))
			}
			row[j] = float32(value-zero[j]) * scale[j]
		}
	})
}

// levels is the range of quantized values.
func (g Spec) levels() kernel.IntRange { return kernel.IntRange{Lo: g.Low, Hi: g.High} }

// middle is the zero point of symmetric weights, and of blocks of zeros.
func (g Spec) middle() int32 { return (g.Low + g.High + 1) / 2 }

// over is the scale and zero point that cover a range, extended to 0. For symmetric weights the end of larger magnitude
// maps to the lowest quantized value, with a negative scale if necessary.
func (g Spec) over(low, high float32) (scale float32, zero int32) {
	low, high = min(low, 0), max(high, 0)
	if !g.Symmetric {
		scale = (high - low) / float32(g.High-g.Low)
		zero = g.Low + int32(math.RoundToEven(float64(-low/scale)))
		return scale, min(max(zero, g.Low), g.High)
	}
	zero = g.middle()
	down, up := float32(g.Low-zero), float32(g.High-zero)
	// The levels reach one step further down than up. A negative scale turns the block around, so that its larger
	// side has that step.
	if -low >= high {
		return low / down, zero
	}
	if -down > up {
		return high / down, zero
	}
	return high / up, zero
}
