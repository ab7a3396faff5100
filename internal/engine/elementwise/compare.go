package elementwise

import (
	"cmp"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// runComparison computes the operators whose result is bool.
func runComparison(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		return zip(c, c.In[0], c.In[1], comparison[float32](c.Node))
	case dt == ir.Double:
		return zip(c, c.In[0], c.In[1], comparison[float64](c.Node))
	case block.Signed.Has(dt):
		return zip(c, c.In[0], c.In[1], comparison[int64](c.Node))
	case (block.Unsigned | block.Bool).Has(dt):
		return zip(c, c.In[0], c.In[1], comparison[uint64](c.Node))
	case dt == ir.String:
		return equalText(c)
	default:
		return unexpected(c, dt)
	}
}

func comparison[T number](n *op.Node) binaryLoops[T, bool] {
	switch n.ID.Type {
	case "Equal":
		return binaryLoops[T, bool]{vv: equal[T]}
	case "Greater":
		return binaryLoops[T, bool]{vv: func(dst []bool, a, b []T) { less(dst, b, a) }}
	case "GreaterOrEqual":
		return binaryLoops[T, bool]{vv: func(dst []bool, a, b []T) { atMost(dst, b, a) }}
	case "Less":
		return binaryLoops[T, bool]{vv: less[T]}
	}
	return binaryLoops[T, bool]{vv: atMost[T]}
}

func equal[T comparable](dst []bool, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] == b[i]
	}
}

func less[T cmp.Ordered](dst []bool, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] < b[i]
	}
}

func atMost[T cmp.Ordered](dst []bool, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] <= b[i]
	}
}

func equalText(c *op.Call) error {
	a, b, dst := c.In[0], c.In[1], ir.View[bool](c.Out[0])
	w := block.Broadcast(c.Out[0].Shape, a.Shape, b.Shape)
	w.Runs(0, w.Size(), func(at, n int, off []int) {
		for i := range n {
			dst[at+i] = a.Text[off[0]+i*w.Step(0)] == b.Text[off[1]+i*w.Step(1)]
		}
	})
	return nil
}
