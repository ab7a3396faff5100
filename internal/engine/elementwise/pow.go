package elementwise

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func powOps() []op.Op {
	return []op.Op{{Type: "Pow", Since: 7, Shape: powShape, Run: runPow, Work: powWork, InPlace: []int{0}}}
}

// powShape: base and exponent may have different types; the result has the base's.
func powShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := (block.Floats | block.Of(ir.Int32, ir.Int64)).Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	y, err := block.Numbers.Tensor(in, 1, "Y")
	if err != nil {
		return nil, err
	}
	return broadcast(x.DType, x, y)
}

// powTypes are the types that base and exponent are converted to, unless they are read as them anyway.
func powTypes(x, y ir.DType) (base, exponent ir.DType) {
	switch {
	case !block.Floats.Has(x) && block.Floats.Has(y):
		return ir.Double, ir.Double
	case (block.Float | block.Halves).Has(x) && (block.Float | block.Halves).Has(y):
		return x, y
	case block.Halves.Has(x):
		return x, ir.Float
	}
	return x, x
}

func powWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	size := int64(workers) * zipBytes
	base, exponent := powTypes(in[0].DType, in[1].DType)
	if base != in[0].DType {
		size += block.Bytes[float64](int(in[0].Elems()))
	}
	if exponent != in[1].DType {
		size += block.Bytes[float64](int(in[1].Elems()))
	}
	return size
}

func runPow(c *op.Call) error {
	base, exponent := powTypes(c.In[0].DType, c.In[1].DType)
	spare := c.Work[c.Pool.Workers()*zipBytes:]
	// Both operands have one of few types then, so that there is not a loop for each pair.
	x, spare := converted(c, c.In[0], base, spare)
	y, _ := converted(c, c.In[1], exponent, spare)
	switch to := c.Out[0].DType; {
	case block.Signed.Has(base):
		least := int64(-1) << (to.Bits() - 1)
		return zip(c, x, y, binaryLoops[int64, int64]{vv: each(func(a, b int64) int64 { return intPow(a, b, least) })})
	case to == ir.Int32:
		pow := func(a, b float64) int64 { return int64(truncate32(math.Pow(a, b))) }
		return zip(c, x, y, binaryLoops[float64, int64]{vv: each(pow)})
	case to == ir.Int64:
		pow := func(a, b float64) int64 { return truncate64(math.Pow(a, b)) }
		return zip(c, x, y, binaryLoops[float64, int64]{vv: each(pow)})
	case to == ir.Double:
		return zip(c, x, y, binaryLoops[float64, float64]{vv: each(math.Pow), vs: power(math.Pow)})
	}
	return zip(c, x, y, binaryLoops[float32, float32]{vv: each(singlePow), vs: power(singlePow)})
}

// converted is a as elements of that type, in memory of spare if a has another type.
func converted(c *op.Call, a *ir.Array, dt ir.DType, spare []byte) (*ir.Array, []byte) {
	if a.DType == dt {
		return a, spare
	}
	wide := &ir.Array{DType: dt, Shape: a.Shape}
	wide.Data = spare[:wide.Bytes()]
	convert(c, wide, a)
	return wide, spare[block.Bytes[float64](int(a.Elems())):]
}

// singlePow is math.Pow rounded, in a fifth of its time for ordinary arguments: within the range of float32 the product
// has an error below 2^-46.
func singlePow(a, b float32) float32 {
	// The exceptional cases of pow are those of C, which math.Pow has.
	if a > 0 && a <= math.MaxFloat32 && a != 1 {
		return float32(math.Exp(float64(b) * math.Log(float64(a))))
	}
	return float32(math.Pow(float64(a), float64(b)))
}

// power raises all elements to one power. Squares and cubes are common, and many times faster.
func power[T real](pow func(a, b T) T) func(dst, x []T, exponent T) {
	return func(dst, x []T, exponent T) {
		x = x[:len(dst)]
		switch exponent {
		case 2:
			for i, v := range x {
				dst[i] = v * v
			}
		case 3:
			for i, v := range x {
				d := float64(v)
				dst[i] = T(d * d * d)
			}
		default:
			for i, v := range x {
				dst[i] = pow(v, exponent)
			}
		}
	}
}

// intPow wraps around like the product; a fraction is truncated, and 0 to a negative power, which is infinite, is
// least, the minimum of the type and the result of truncating Inf.
func intPow(a, b, least int64) int64 {
	if b < 0 {
		switch a {
		case 0:
			return least
		case 1:
			return 1
		case -1:
			return 1 - 2*(b&1)
		}
		return 0
	}
	product := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product *= a
		}
		a *= a
	}
	return product
}
