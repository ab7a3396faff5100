package elementwise

import (
	"cmp"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// runComparison computes the operators whose result is bool.
func runComparison(c *op.Call) error {
	switch dt := c.In[0].DType; dt {
	case ir.Float, ir.Float16, ir.BFloat16:
		return zip(c, c.In[0], c.In[1], comparison[float32](c.Node))
	case ir.Double:
		return zip(c, c.In[0], c.In[1], comparison[float64](c.Node))
	case ir.Int8:
		return zip(c, c.In[0], c.In[1], comparison[int8](c.Node))
	case ir.Int16:
		return zip(c, c.In[0], c.In[1], comparison[int16](c.Node))
	case ir.Int32:
		return zip(c, c.In[0], c.In[1], comparison[int32](c.Node))
	case ir.Int64:
		return zip(c, c.In[0], c.In[1], comparison[int64](c.Node))
	case ir.Uint8:
		return zip(c, c.In[0], c.In[1], comparison[uint8](c.Node))
	case ir.Uint16:
		return zip(c, c.In[0], c.In[1], comparison[uint16](c.Node))
	case ir.Uint32:
		return zip(c, c.In[0], c.In[1], comparison[uint32](c.Node))
	case ir.Uint64:
		return zip(c, c.In[0], c.In[1], comparison[uint64](c.Node))
	case ir.Bool:
		return zip(c, c.In[0], c.In[1], binaryLoops[bool, bool]{vv: each(func(a, b bool) bool { return a == b })})
	case ir.String:
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
