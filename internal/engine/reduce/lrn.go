package reduce

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func lrnOps() []op.Op {
	return []op.Op{{Type: "LRN", Since: 1, Shape: lrnShape, Run: runLRN, Work: lrnWork}}
}

func lrnShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 2 {
		return nil, fmt.Errorf("input X is %s, want at least one channel", x)
	}
	if size := n.Int("size", 0); size < 1 {
		return nil, fmt.Errorf("attribute size is %d, want a positive number of channels", size)
	}
	return []ir.Spec{x.Spec()}, nil
}

// lrnBytes is the size of blocks of input, output and sums.
const lrnBytes = 3 * 8 * block.Len

func lrnWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * lrnBytes }

func runLRN(c *op.Call) error {
	if c.In[0].DType == ir.Double {
		lrn[float64](c)
	} else {
		lrn[float32](c)
	}
	return nil
}

// lrn divides by a power of the sum of squares over adjacent channels.
func lrn[T floatElement](c *op.Call) {
	l := lanesOf(c.In[0], 1)
	size := int(min(c.Int("size", 1), math.MaxInt32))
	in, out := block.Read[T](c.In[0]), block.Write[T](c.Out[0])
	alpha, bias, power := float64(c.Float("alpha", 1e-4))/float64(size), float64(c.Float("bias", 1)),
		root(float64(c.Float("beta", 0.75)))
	block.Parallel(c, l.outer*l.n, block.Grain/max(4*l.inner, 1), lrnBytes, func(s block.Scratch, from, to int) {
		bufX, bufY, sums := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len),
			block.Take[float64](&s, block.Len)
		for i := from; i < to; i++ {
			k := i % l.n
			// The specification's window: for even sizes one channel more after k than before it.
			first, last := max(0, k-(size-1)/2), min(l.n-1, k+size/2)
			for at := 0; at < l.inner; at += block.Len {
				n := min(block.Len, l.inner-at)
				clear(sums[:n])
				for j := first; j <= last; j++ {
					for p, v := range in.Block(bufX, (i-k+j)*l.inner+at, n) {
						sums[p] += float64(v) * float64(v)
					}
				}
				y := out.Block(bufY, i*l.inner+at, n)
				for p, v := range in.Block(bufX, i*l.inner+at, n) {
					y[p] = T(float64(v) / power(bias+alpha*sums[p]))
				}
				out.Done(i*l.inner+at, y)
			}
		}
	})
}

// root is x^beta. The default is a product of roots, which are ten times faster.
func root(beta float64) func(float64) float64 {
	if beta == 0.75 {
		return func(x float64) float64 {
			r := math.Sqrt(x)
			return r * math.Sqrt(r)
		}
	}
	return func(x float64) float64 { return math.Pow(x, beta) }
}
