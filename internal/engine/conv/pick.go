package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pick resizes by taking the nearest element. It moves elements and does not look at them, but for
// the value of places outside.
func (r *resizing) pick(c *op.Call) error {
	x, y := c.In[0], c.Out[0]
	if x.Elems() == 0 {
		return fmt.Errorf("input X, %s, is empty: there is nothing to resize", x)
	}
	if x.DType == ir.String {
		pickAs(r, c, x.Text, y.Text, "")
		return nil
	}
	beyond := ir.NewArray(x.DType, 1)
	if lo, hi, bounded := bounds(x.DType); bounded {
		number.Write(beyond, 0, []float64{min(max(float64(r.beyond), lo), hi)})
	} else {
		number.Write(beyond, 0, []float64{float64(r.beyond)})
	}
	switch x.DType.Bits() {
	case 8:
		pickBits[uint8](r, c, beyond)
	case 16:
		pickBits[uint16](r, c, beyond)
	case 32:
		pickBits[uint32](r, c, beyond)
	case 64:
		pickBits[uint64](r, c, beyond)
	case 128:
		pickBits[complex128](r, c, beyond)
	default:
		return fmt.Errorf("input X is %s, which is packed", x)
	}
	return nil
}

func pickBits[T ir.Element](r *resizing, c *op.Call, beyond *ir.Array) {
	pickAs(r, c, ir.View[T](c.In[0]), ir.View[T](c.Out[0]), ir.View[T](beyond)[0])
}

// pickAs takes blocks of inner elements, which are what lies behind the last axis that changes.
func pickAs[T any](r *resizing, c *op.Call, x, y []T, beyond T) {
	rank := len(r.out)
	last := rank - 1
	for last > 0 && r.line(last, c.In[0].Shape[last]).same() {
		last--
	}
	if rank == 0 {
		copy(y, x)
		return
	}
	g := picker[T]{x: x, beyond: beyond, inner: int(op.Product(r.out[last+1:]))}
	for i := range last + 1 {
		g.places = append(g.places, r.nearestPlaces(r.line(i, c.In[0].Shape[i])))
		g.in = append(g.in, int(c.In[0].Shape[i]))
	}
	width := len(g.places[last]) * g.inner
	c.Pool.Rows(len(y)/width, 1+resizeGrain/width, func(from, to int) {
		before := -1 // the row of x that the last row of y was made from
		for i := from; i < to; i++ {
			row := part(y, i, width)
			from := g.row(i)
			if from >= 0 && from == before {
				copy(row, part(y, i-1, width))
				continue
			}
			g.fill(row, from)
			before = from
		}
	})
}

type picker[T any] struct {
	x      []T
	beyond T
	inner  int
	in     []int     // lengths of x's axes
	places [][]int32 // by axis
}

// row is the row of x that row i of y comes from, -1 for none.
func (g *picker[T]) row(i int) int {
	at, step := 0, 1
	for a := len(g.in) - 2; a >= 0; a-- {
		p := int(g.places[a][i%len(g.places[a])])
		if p < 0 {
			return -1
		}
		at += p * step
		step *= g.in[a]
		i /= len(g.places[a])
	}
	return at
}

func (g *picker[T]) fill(y []T, row int) {
	if row < 0 {
		fill(y, g.beyond)
		return
	}
	last := len(g.in) - 1
	x := part(g.x, row, g.in[last]*g.inner)
	for o, p := range g.places[last] {
		switch {
		case p < 0:
			fill(part(y, o, g.inner), g.beyond)
		case g.inner == 1:
			y[o] = x[p]
		default:
			copy(part(y, o, g.inner), part(x, int(p), g.inner))
		}
	}
}
