package elementwise

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
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
	switch dt := c.In[0].DType; dt {
	case ir.Int8:
		return zip(c, c.In[0], c.In[1], bitwise[int8](c.Node))
	case ir.Int16:
		return zip(c, c.In[0], c.In[1], bitwise[int16](c.Node))
	case ir.Int32:
		return zip(c, c.In[0], c.In[1], bitwise[int32](c.Node))
	case ir.Int64:
		return zip(c, c.In[0], c.In[1], bitwise[int64](c.Node))
	case ir.Uint8:
		return zip(c, c.In[0], c.In[1], bitwise[uint8](c.Node))
	case ir.Uint16:
		return zip(c, c.In[0], c.In[1], bitwise[uint16](c.Node))
	case ir.Uint32:
		return zip(c, c.In[0], c.In[1], bitwise[uint32](c.Node))
	case ir.Uint64:
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
