package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A rowFunc writes a normalized row and returns its mean and the inverse of its deviation. bias may be nil.
type rowFunc[T floatElement] func(dst, x, scale, bias []T, eps float32, centered bool) (mean, inv T)

// normRows computes the outputs of r from its inputs.
func normRows[T floatElement](c *op.Call, r rowNorm, f rowFunc[T]) {
	x := c.In[0]
	l, eps := rowsFrom(c.Node, x), c.Float("epsilon", r.epsilon)
	size := rowBuffers * block.Bytes[float64](l.n)
	shared := block.Scratch{Free: c.Work[int64(c.Pool.Workers())*size:]}
	in, out, sums := block.Read[T](x), block.Write[T](c.Out[0]), block.Write[T](output(c, r.sum))
	scale, bias := rowInputOf[T](x, c.In[r.scale], l, &shared), rowInputOf[T](x, input(c, r.bias), l, &shared)
	mean, inv := setter(output(c, r.mean)), setter(output(c, r.inv))
	add := addends[T](c, r.add)
	block.Parallel(c, l.outer, l.grain(2), size, func(s block.Scratch, from, to int) {
		var bufs [rowBuffers][]T
		for i := range bufs {
			bufs[i] = block.Take[T](&s, l.n)
		}
		for i := from; i < to; i++ {
			// Statistics of no elements are 0/0.
			if l.n == 0 {
				mean(i, math.NaN())
				inv(i, math.NaN())
				continue
			}
			at := i * l.n
			row := in.Block(bufs[0], at, l.n)
			if len(add) > 0 {
				row = addRows(sums.Block(bufs[0], at, l.n), row, add, at, bufs[4])
				sums.Done(at, row)
			}
			y := out.Block(bufs[1], at, l.n)
			m, v := f(y, row, scale.row(at, l.n, bufs[2]), bias.row(at, l.n, bufs[3]), eps, r.centered)
			out.Done(at, y)
			mean(i, float64(m))
			inv(i, float64(v))
		}
	})
}

// input is input i, nil for 0 and if absent.
func input(c *op.Call, i int) *ir.Array {
	if i == 0 {
		return nil
	}
	return c.Opt(i)
}

// output is output i, nil for 0 and without consumers.
func output(c *op.Call, i int) *ir.Array {
	if i == 0 {
		return nil
	}
	return outputAt(c, i)
}

// outputAt is output i, nil without consumers.
func outputAt(c *op.Call, i int) *ir.Array {
	if i >= len(c.Out) {
		return nil
	}
	return c.Out[i]
}

// setter writes single numbers to a float tensor, if there is one.
func setter(a *ir.Array) func(i int, v float64) {
	if a != nil && a.DType == ir.Double {
		return block.Write[float64](a).Set
	}
	w := block.Write[float32](a)
	return func(i int, v float64) { w.Set(i, float32(v)) }
}

func addends[T ir.Element](c *op.Call, inputs []int) []block.Operand[T] {
	var add []block.Operand[T]
	for _, i := range inputs {
		if a := c.Opt(i); a != nil {
			add = append(add, block.OperandOf[T](block.Walk{}, 0, c.In[0], a))
		}
	}
	return add
}

func addRows[T floatElement](dst, x []T, add []block.Operand[T], at int, buf []T) []T {
	for i := range add {
		addRow(dst, x, add[i].Ordered(at, len(x), buf))
		x = dst
	}
	return dst
}

func addRow[T floatElement](dst, a, b []T) {
	if dst, ok := any(dst).([]float32); ok {
		kernel.Add(dst, any(a).([]float32), any(b).([]float32))
		return
	}
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

func normSingle(dst, x, scale, bias []float32, eps float32, centered bool) (mean, inv float32) {
	if centered {
		return kernel.LayerNorm(dst, x, scale, bias, eps)
	}
	square := kernel.ReduceSumSquare(x) / float64(len(x))
	kernel.RMSNorm(dst, x, scale, eps)
	return 0, float32(1 / math.Sqrt(square+float64(eps)))
}

func normDouble(dst, x, scale, bias []float64, eps float32, centered bool) (mean, inv float64) {
	if centered {
		for _, v := range x {
			mean += v
		}
		mean /= float64(len(x))
	}
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	inv = 1 / math.Sqrt(square/float64(len(x))+float64(eps))
	for i, v := range x {
		dst[i] = (v - mean) * inv * scale[i]
	}
	for i, v := range bias {
		dst[i] += v
	}
	return mean, inv
}
