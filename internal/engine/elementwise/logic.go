package elementwise

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
)

func runLogic(c *op.Call) error {
	f := binaryLoops[bool, bool]{vv: func(dst, a, b []bool) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] && b[i]
		}
	}}
	switch c.ID.Type {
	case "Or":
		f.vv = each(func(a, b bool) bool { return a || b })
	case "Xor":
		f.vv = each(func(a, b bool) bool { return a != b })
	}
	return zip(c, c.In[0], c.In[1], f)
}

// runBits computes the bitwise operators of integers.
func runBits(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case block.Signed.Has(dt):
		return zip(c, c.In[0], c.In[1], bitwise[int64](c.Node))
	case block.Unsigned.Has(dt):
		return zip(c, c.In[0], c.In[1], bitwise[uint64](c.Node))
	default:
		return unexpected(c, dt)
	}
}

func bitwise[T integer](n *op.Node) binaryLoops[T, T] {
	f := func(a, b T) T { return a & b }
	switch {
	case n.ID.Type == "BitwiseOr":
		f = func(a, b T) T { return a | b }
	case n.ID.Type == "BitwiseXor":
		f = func(a, b T) T { return a ^ b }
	case n.ID.Type == "BitShift" && n.Text("direction", "") == "LEFT":
		f = func(a, b T) T { return a << uint64(b) }
	case n.ID.Type == "BitShift":
		// A negative shift is a large one of uint64, which leaves only copies of the sign, as required.
		f = func(a, b T) T { return a >> uint64(b) }
	}
	return binaryLoops[T, T]{vv: each(f)}
}
