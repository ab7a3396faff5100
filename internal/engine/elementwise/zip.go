package elementwise

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// binaryLoops are the loops of a binary operator. Those with a scalar operand may be missing. dst may be a or b.
type binaryLoops[T, D ir.Element] struct {
	vv func(dst []D, a, b []T)
	vs func(dst []D, a []T, b T)
	sv func(dst []D, a T, b []T)
}

// do computes a block. A scalar operand is repeated in its buffer if needed.
func (f binaryLoops[T, D]) do(dst []D, a, b, bufA, bufB []T) {
	n := len(dst)
	switch {
	case f.vs != nil && len(a) == n && len(b) == 1:
		f.vs(dst, a, b[0])
	case f.sv != nil && len(b) == n && len(a) == 1:
		f.sv(dst, a[0], b)
	default:
		f.vv(dst, block.Repeated(a, bufA, n), block.Repeated(b, bufB, n))
	}
}

// zip computes output 0 from x and y.
func zip[T, D ir.Element](c *op.Call, x, y *ir.Array, f binaryLoops[T, D]) error {
	dst := c.Out[0]
	w := block.Together(dst, x, y)
	a, b := block.OperandOf[T](w, 0, dst, x), block.OperandOf[T](w, 1, dst, y)
	out := block.Write[D](dst)
	block.Parallel(c, w.Size(), block.Grain, zipBytes, func(s block.Scratch, from, to int) {
		bufA, bufB, buf := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len), block.Take[D](&s, block.Len)
		w.Blocks(from, to, func(at, n int, off []int) {
			z := out.Block(buf, at, n)
			f.do(z, a.At(at, n, off, bufA), b.At(at, n, off, bufB), bufA, bufB)
			out.Done(at, z)
		})
	})
	return nil
}

// zipBytes is the scratch memory of a worker with three blocks of the widest elements.
const zipBytes = 3 * 8 * block.Len

func zipWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * zipBytes }
