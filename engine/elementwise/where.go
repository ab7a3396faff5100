package elementwise

import (
	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func whereOps() []op.Op {
	return []op.Op{{Type: "Where", Since: 9, Shape: whereShape, Run: runWhere, Work: whereWork, InPlace: []int{1, 2}}}
}

func whereShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	cond, err := block.Bool.Tensor(in, 0, "condition")
	if err != nil {
		return nil, err
	}
	x, err := block.Any.Tensor(in, 1, "X")
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
	case 128:
		selectWords[complex128](c)
	case 0:
		selectText(c)
	default:
		return unexpected(c, c.In[1].DType)
	}
	return nil
}

// whereBytes is the scratch of a worker: blocks of the widest elements, and one of conditions.
const whereBytes = (2*16 + 8) * block.Len

func whereWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * whereBytes }

func selectWords[T ir.Element](c *op.Call) {
	x, y, out := words[T](c.In[1]), words[T](c.In[2]), words[T](c.Out[0])
	w := block.Together(out, c.In[0], x, y)
	cond, a, b := block.OperandOf[bool](w, 0, out, c.In[0]), block.OperandOf[T](w, 1, out, x), block.OperandOf[T](w, 2, out, y)
	dst := ir.View[T](out)
	block.Share(c, w.Size(), block.Grain, whereBytes, func(s block.Scratch, from, to int) {
		bufC, bufA, bufB := block.Take[bool](&s, block.Len), block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		w.Blocks(from, to, func(at, n int, off []int) {
			choose(dst[at:at+n], cond.At(at, n, off, bufC), a.At(at, n, off, bufA), b.At(at, n, off, bufB))
		})
	})
}

// words is a with elements of type T of the same width.
func words[T ir.Element](a *ir.Array) *ir.Array {
	w := ir.ArrayOf[T](nil, 0)
	return &ir.Array{DType: w.DType, Shape: a.Shape, Data: a.Data}
}

// choose writes a where cond is set, else b. Each of them has one element or all.
func choose[T any](dst []T, cond []bool, a, b []T) {
	n := len(dst)
	switch {
	case len(cond) < n && cond[0]:
		spread(dst, a)
	case len(cond) < n:
		spread(dst, b)
	case len(a) < n && len(b) < n:
		for i, set := range cond {
			dst[i] = b[0]
			if set {
				dst[i] = a[0]
			}
		}
	case len(a) < n:
		one := a[0]
		for i, set := range cond {
			v := b[i]
			if set {
				v = one
			}
			dst[i] = v
		}
	case len(b) < n:
		one := b[0]
		for i, set := range cond {
			v := one
			if set {
				v = a[i]
			}
			dst[i] = v
		}
	default:
		for i, set := range cond {
			v := b[i]
			if set {
				v = a[i]
			}
			dst[i] = v
		}
	}
}

func spread[T any](dst, x []T) {
	if len(x) < len(dst) {
		block.Fill(dst, x[0])
		return
	}
	copy(dst, x)
}

func selectText(c *op.Call) {
	cond, x, y, dst := ir.View[bool](c.In[0]), c.In[1].Text, c.In[2].Text, c.Out[0].Text
	w := block.Together(c.Out[0], c.In...)
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
