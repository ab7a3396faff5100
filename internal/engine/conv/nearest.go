package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// copyNearest resizes with nearest-neighbour interpolation. It moves elements of any type; outside is the extrapolation
// value.
func (r *resizePlan) copyNearest(c *op.Call) error {
	x, y := c.In[0], c.Out[0]
	if x.Elems() == 0 {
		return fmt.Errorf("input X, %s, is empty", x)
	}
	if x.DType == ir.String {
		nearestAs(r, c, x.Text, y.Text, "")
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
		nearestBits[uint8](r, c, beyond)
	case 16:
		nearestBits[uint16](r, c, beyond)
	case 32:
		nearestBits[uint32](r, c, beyond)
	case 64:
		nearestBits[uint64](r, c, beyond)
	case 128:
		nearestBits[complex128](r, c, beyond)
	default:
		return fmt.Errorf("packed type not supported: input X is %s", x)
	}
	return nil
}

func nearestBits[T ir.Element](r *resizePlan, c *op.Call, beyond *ir.Array) {
	nearestAs(r, c, ir.View[T](c.In[0]), ir.View[T](c.Out[0]), ir.View[T](beyond)[0])
}

// nearestAs copies blocks of inner elements: those of the axes after the last one that changes.
func nearestAs[T any](r *resizePlan, c *op.Call, x, y []T, beyond T) {
	rank := len(r.out)
	last := rank - 1
	for last > 0 && r.axis(last, c.In[0].Shape[last]).isUnchanged() {
		last--
	}
	if rank == 0 {
		copy(y, x)
		return
	}
	g := nearestPicker[T]{x: x, beyond: beyond, inner: int(op.Product(r.out[last+1:]))}
	for i := range last + 1 {
		g.places = append(g.places, r.nearestPositions(r.axis(i, c.In[0].Shape[i])))
		g.in = append(g.in, int(c.In[0].Shape[i]))
	}
	width := len(g.places[last]) * g.inner
	c.Pool.Rows(len(y)/width, 1+resizeGrain/width, func(from, to int) {
		before := -1 // source row of the last row of y
		for i := from; i < to; i++ {
			row := part(y, i, width)
			from := g.row(i)
			// Upsampling repeats rows: the last one is in the L1 cache, and a copy is faster than picking elements.
			if from >= 0 && from == before {
				copy(row, part(y, i-1, width))
				continue
			}
			g.fill(row, from)
			before = from
		}
	})
}

type nearestPicker[T any] struct {
	x      []T
	beyond T
	inner  int
	in     []int     // lengths of x's axes
	places [][]int32 // by axis
}

// row is the row of x that row i of y is copied from, -1 for none.
func (g *nearestPicker[T]) row(i int) int {
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

func (g *nearestPicker[T]) fill(y []T, row int) {
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
