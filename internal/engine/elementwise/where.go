package elementwise

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func whereOps() []op.Op {
	return []op.Op{{Type: "Where", Since: 9, Shape: whereShape, Run: runWhere, Work: zipWork, InPlace: []int{1, 2}}}
}

// selectable are the types that are not packed.
const selectable = block.Numbers | block.Bool | block.Text | block.Complex | block.Float8

func whereShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	cond, err := block.Bool.Tensor(in, 0, "condition")
	if err != nil {
		return nil, err
	}
	x, err := selectable.Tensor(in, 1, "X")
	if err != nil {
		return nil, err
	}
	y, err := block.Like(x, in, 2, "Y")
	if err != nil {
		return nil, err
	}
	return broadcast(x.DType, cond, x, y)
}

// runWhere moves elements as words of their width.
func runWhere(c *op.Call) error {
	switch c.In[1].DType.Bits() {
	case 8:
		selectWords[uint8](c)
	case 16:
		selectWords[uint16](c)
	case 32:
		selectWords[uint32](c)
	case 64:
		selectWords[uint64](c)
	case 0:
		selectOne(c, c.In[1].Text, c.In[2].Text, c.Out[0].Text)
	case 128:
		selectOne(c, ir.View[complex128](c.In[1]), ir.View[complex128](c.In[2]), ir.View[complex128](c.Out[0]))
	default:
		return unexpected(c, c.In[1].DType)
	}
	return nil
}

type word interface {
	uint8 | uint16 | uint32 | uint64
}

func selectWords[T word](c *op.Call) {
	x, y, out := words[T](c.In[1]), words[T](c.In[2]), words[T](c.Out[0])
	w := block.Together(out, c.In[0], x, y)
	cond, a, b := block.OperandOf[uint8](w, 0, out, words[uint8](c.In[0])), block.OperandOf[T](w, 1, out, x),
		block.OperandOf[T](w, 2, out, y)
	dst := ir.View[T](out)
	block.Parallel(c, w.Size(), block.Grain, zipBytes, func(s block.Scratch, from, to int) {
		bufC, bufA, bufB := block.Take[uint8](&s, block.Len), block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		w.Blocks(from, to, func(at, n int, off []int) {
			choose(dst[at:at+n], cond.At(at, n, off, bufC), a.At(at, n, off, bufA), b.At(at, n, off, bufB), bufA, bufB)
		})
	})
}

// words is a as elements of type T of the same width.
func words[T ir.Element](a *ir.Array) *ir.Array {
	w := ir.ArrayOf[T](nil, 0)
	return &ir.Array{DType: w.DType, Shape: a.Shape, Data: a.Data}
}

// choose writes a where cond is set, else b. Each of them has one element or all.
func choose[T word](dst []T, cond []uint8, a, b, bufA, bufB []T) {
	n := len(dst)
	if len(cond) < n {
		if cond[0] != 0 {
			spread(dst, a)
		} else {
			spread(dst, b)
		}
		return
	}
	a, b = block.Repeated(a, bufA, n), block.Repeated(b, bufB, n)
	for i, c := range cond {
		mask := -T(c & 1) // a branch on data would be mispredicted half the time
		dst[i] = b[i] ^ (a[i]^b[i])&mask
	}
}

func spread[T any](dst, x []T) {
	if len(x) < len(dst) {
		block.Fill(dst, x[0])
		return
	}
	copy(dst, x)
}

// selectOne selects elements one by one.
func selectOne[T any](c *op.Call, x, y, dst []T) {
	cond := ir.View[bool](c.In[0])
	w := block.Broadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	w.Runs(0, w.Size(), func(at, n int, off []int) {
		for i := range n {
			if cond[off[0]+i*w.Step(0)] {
				dst[at+i] = x[off[1]+i*w.Step(1)]
			} else {
				dst[at+i] = y[off[2]+i*w.Step(2)]
			}
		}
	})
}
