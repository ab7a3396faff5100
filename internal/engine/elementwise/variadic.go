package elementwise

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// variadicOps have any number of inputs of one type.
func variadicOps() []op.Op {
	var ops []op.Op
	for _, v := range []struct {
		name  string
		since int64
		types block.Set
	}{
		{"Max", 6, block.Numbers},
		{"Min", 6, block.Numbers},
		{"Sum", 6, block.Floats},
		{"Mean", 6, block.Floats},
	} {
		ops = append(ops, op.Op{
			Type: v.name, Since: v.since, Shape: variadicShape(v.types),
			Run: runVariadic, Work: zipWork, InPlace: []int{0, 1},
		})
	}
	return ops
}

func variadicShape(types block.Set) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		first, err := types.Tensor(in, 0, "data_0")
		if err != nil {
			return nil, err
		}
		for i := range in {
			if _, err := block.Like(first, in, i, fmt.Sprint("data_", i)); err != nil {
				return nil, err
			}
		}
		return broadcast(first.DType, in...)
	}
}

func runVariadic(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		return fold[float32](c)
	case dt == ir.Double:
		return fold[float64](c)
	case block.Signed.Has(dt):
		return fold[int64](c)
	case block.Unsigned.Has(dt):
		return fold[uint64](c)
	default:
		return unexpected(c, dt)
	}
}

// fold combines all inputs block by block: the output may reuse the memory of one that occurs twice among the inputs.
func fold[T number](c *op.Call) error {
	dst := c.Out[0]
	w := block.Together(dst, c.In...)
	in := make([]block.Operand[T], len(c.In))
	for i, a := range c.In {
		in[i] = block.OperandOf[T](w, i, dst, a)
	}
	f, finish := folding[T](c.Node, len(in))
	out := block.Write[T](dst)
	block.Parallel(c, w.Size(), block.Grain, zipBytes, func(s block.Scratch, from, to int) {
		buf, sum := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		w.Blocks(from, to, func(at, n int, off []int) {
			acc := block.Repeated(in[0].At(at, n, off, sum), sum, n)
			for i := 1; i < len(in); i++ {
				x := in[i].At(at, n, off, buf)
				f.do(sum[:n], acc, x, sum, buf)
				acc = sum[:n]
			}
			y := out.Block(sum, at, n)
			copy(y, acc)
			finish(y)
			out.Done(at, y)
		})
	})
	return nil
}

// folding returns the function that combines two operands, and the one applied to the result.
func folding[T number](n *op.Node, count int) (f binaryLoops[T, T], finish func([]T)) {
	switch n.ID.Type {
	case "Max", "Min":
		return arithmetic[T](n), func([]T) {}
	case "Sum":
		return sums[T](), func([]T) {}
	}
	return sums[T](), func(x []T) {
		for i := range x {
			x[i] /= T(count)
		}
	}
}

func sums[T number]() binaryLoops[T, T] {
	if f, ok := any(kernels["Add"]).(binaryLoops[T, T]); ok {
		return f
	}
	return binaryLoops[T, T]{vv: add[T]}
}
