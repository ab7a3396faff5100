package modelgen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/ir"
)

// encode is the bytes of one number of a type, rounded to it.
func encode(b []byte, t ir.DType, x float64) []byte {
	switch t {
	case ir.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	case ir.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	case ir.Float16:
		return binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(float32(x)).Bits())
	case ir.BFloat16:
		return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(x))>>16))
	}
	switch n := int64(x); t.Bits() {
	case 64:
		return binary.LittleEndian.AppendUint64(b, uint64(n))
	case 32:
		return binary.LittleEndian.AppendUint32(b, uint32(n))
	case 16:
		return binary.LittleEndian.AppendUint16(b, uint16(n))
	default:
		return append(b, byte(n))
	}
}

// tensorOf is a tensor of numbers.
func tensorOf(name string, t ir.DType, shape []int64, values func(i int64) float64) *Tensor {
	out := &Tensor{Name: name, Type: t, Shape: shape}
	out.Data = make([]byte, 0, out.elems()*max(8, t.Bits())/8)
	for i := range out.elems() {
		out.Data = encode(out.Data, t, values(i))
	}
	return out
}

// int64s is a list of integers.
func int64s(name string, values ...int64) *Tensor {
	return tensorOf(name, ir.Int64, []int64{int64(len(values))}, func(i int64) float64 { return float64(values[i]) })
}

// normal is a function of normal numbers.
func normal(r *rand.Rand, scale float64) func(int64) float64 {
	return func(int64) float64 { return r.NormFloat64() * scale }
}

// A filler is a kind of values of a weight. It changes numbers that are normal; channels are the numbers of each index
// of the first axis, or of the last one.
type filler struct {
	name   string
	weight int // how often it is chosen
	fill   func(r *rand.Rand, x []float64, channels [][]int)
}

// fillers are what weights hold in practice, and what a method may mistake.
var fillers = []filler{
	{"normal", 12, func(*rand.Rand, []float64, [][]int) {}},
	{"channels of unequal scale", 3, func(r *rand.Rand, x []float64, channels [][]int) {
		for _, c := range channels {
			s := math.Exp(2 * r.NormFloat64())
			each(x, c, func(v float64) float64 { return v * s })
		}
	}},
	{"outliers", 2, func(r *rand.Rand, x []float64, _ [][]int) {
		for range 1 + len(x)/500 {
			x[r.IntN(len(x))] *= 30
		}
	}},
	{"dead channels", 2, func(r *rand.Rand, x []float64, channels [][]int) {
		for _, c := range some(r, channels) {
			s := math.Pow(10, -37-5*r.Float64())
			each(x, c, func(v float64) float64 { return v * s })
		}
	}},
	{"zero channels", 2, func(r *rand.Rand, x []float64, channels [][]int) {
		for _, c := range some(r, channels) {
			each(x, c, func(float64) float64 { return 0 })
		}
	}},
	{"sparse", 2, func(r *rand.Rand, x []float64, _ [][]int) {
		for i := range x {
			if r.IntN(10) > 0 {
				x[i] = 0
			}
		}
	}},
	{"negative zeros", 2, func(r *rand.Rand, x []float64, _ [][]int) {
		for i := range x {
			if r.IntN(4) == 0 {
				x[i] = math.Copysign(0, -1)
			}
		}
	}},
	{"few values", 1, func(r *rand.Rand, x []float64, _ [][]int) {
		step := 0.0
		for _, v := range x {
			step = max(step, math.Abs(v)/3)
		}
		for i, v := range x {
			if step > 0 {
				x[i] = math.Round(v/step) * step
			}
		}
	}},
	{"constant", 1, func(r *rand.Rand, x []float64, _ [][]int) {
		for i := range x {
			x[i] = x[0]
		}
	}},
	{"positive", 1, func(r *rand.Rand, x []float64, _ [][]int) {
		for i := range x {
			x[i] = math.Abs(x[i])
		}
	}},
	{"all zero", 1, func(_ *rand.Rand, x []float64, _ [][]int) { clear(x) }},
	{"denormal", 1, func(_ *rand.Rand, x []float64, _ [][]int) {
		for i := range x {
			x[i] *= 1e-39
		}
	}},
	{"not finite", 1, func(r *rand.Rand, x []float64, _ [][]int) {
		x[r.IntN(len(x))] = []float64{math.Inf(1), math.Inf(-1), math.NaN()}[r.IntN(3)]
	}},
}

func each(x []float64, indices []int, f func(float64) float64) {
	for _, i := range indices {
		x[i] = f(x[i])
	}
}

// some is one to a few of the channels.
func some(r *rand.Rand, channels [][]int) [][]int {
	var list [][]int
	for range 1 + r.IntN(3) {
		list = append(list, channels[r.IntN(len(channels))])
	}
	return list
}

// filled is a weight: normal numbers of a standard deviation that keeps that of activations, changed by f.
func filled(r *rand.Rand, name string, t ir.DType, shape []int64, fanIn int64, f filler) *Tensor {
	spec := ir.Spec{Shape: shape}
	x := make([]float64, spec.Elems())
	scale := 1 / math.Sqrt(float64(max(1, fanIn)))
	for i := range x {
		x[i] = r.NormFloat64() * scale
	}
	if len(x) > 0 && len(shape) > 0 {
		f.fill(r, x, channelsOf(shape, r.IntN(2) == 0))
	}
	return tensorOf(name, t, shape, func(i int64) float64 { return x[i] })
}

// channelsOf are the positions of each index of the first or the last axis.
func channelsOf(shape []int64, first bool) [][]int {
	spec := ir.Spec{Shape: shape}
	n := int(spec.Elems())
	axis := int(shape[len(shape)-1])
	if first {
		axis = int(shape[0])
	}
	channels := make([][]int, axis)
	for i := range n {
		c := i % axis
		if first {
			c = i / (n / axis)
		}
		channels[c] = append(channels[c], i)
	}
	return channels
}
