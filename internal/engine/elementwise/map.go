package elementwise

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// transform computes output 0 from x alone. f is called on blocks; dst may be x.
func transform[T, D ir.Element](c *op.Call, x *ir.Array, grain int, f func(dst []D, x []T)) error {
	in, out := block.Read[T](x), block.Write[D](c.Out[0])
	block.Parallel(c, int(x.Elems()), grain, mapBytes, func(s block.Scratch, from, to int) {
		bufX, bufY := block.Take[T](&s, block.Len), block.Take[D](&s, block.Len)
		for at := from; at < to; at += block.Len {
			n := min(block.Len, to-at)
			y := out.Block(bufY, at, n)
			f(y, in.Block(bufX, at, n))
			out.Done(at, y)
		}
	})
	return nil
}

// mapBytes is the scratch memory of a worker with two blocks of the widest elements.
const mapBytes = 2 * 8 * block.Len

func mapWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * mapBytes }

// mapped is a loop of f.
func mapped[T, D any](f func(T) D) func(dst []D, x []T) {
	return func(dst []D, x []T) {
		x = x[:len(dst)]
		for i, v := range x {
			dst[i] = f(v)
		}
	}
}
