package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A grain says which elements of a tensor share a scale: all of them, those at one place of an axis,
// or blocks along an axis.
type grain struct {
	total             int // elements
	outer, dim, inner int // the axes before, the axis, those behind it
	block             int // along the axis; 0 for a scale each place
	single            bool
}

// grainOf reads the shapes of a tensor and its scale (ONNX QuantizeLinear, "supported
// quantization granularities").
func grainOf(n *op.Node, x, scale *ir.Array) (*grain, error) {
	g := &grain{total: int(x.Elems()), single: scale.Elems() == 1}
	if g.single {
		return g, nil
	}
	axis := n.Int("axis", 1)
	if len(x.Shape) == 1 {
		axis = 0
	}
	at, err := op.Axis(axis, len(x.Shape))
	if err != nil {
		return nil, err
	}
	g.outer, g.dim, g.inner = int(op.Product(x.Shape[:at])), int(x.Shape[at]), int(op.Product(x.Shape[at+1:]))
	size := n.Int("block_size", 0)
	if size == 0 {
		if len(scale.Shape) != 1 || scale.Shape[0] != x.Shape[at] {
			return nil, fmt.Errorf("scale is %s, want a scalar or one for each of %d places of axis %d", scale, x.Shape[at], at)
		}
		return g, nil
	}
	if size < 0 || size > 1<<31 {
		return nil, fmt.Errorf("block_size is %d, want a positive number", size)
	}
	g.block = int(size)
	want := slices.Clone(x.Shape)
	want[at] = int64((g.dim + g.block - 1) / g.block)
	if !slices.Equal(scale.Shape, want) {
		return nil, fmt.Errorf("scale is %s, want shape %v for blocks of %d along axis %d", scale, want, size, at)
	}
	return g, nil
}

// A run is elements side by side whose scales are one, if step is 0, or side by side too.
type run struct{ at, n, scale, step int }

// chunk is how many elements are worked on at once.
const chunk = 2048

// runs is their number.
func (g *grain) runs() int {
	switch {
	case g.single:
		return (g.total + chunk - 1) / chunk
	case g.inner != 1:
		return g.outer * g.dim
	case g.block == 0:
		return g.outer
	}
	return g.outer * g.blocks()
}

func (g *grain) blocks() int { return (g.dim + g.block - 1) / g.block }

func (g *grain) run(i int) run {
	switch {
	case g.single:
		return run{at: i * chunk, n: min(chunk, g.total-i*chunk)}
	case g.inner != 1 && g.block == 0:
		return run{at: i * g.inner, n: g.inner, scale: i % g.dim}
	case g.inner != 1:
		block := i/g.dim*g.blocks() + i%g.dim/g.block
		return run{i * g.inner, g.inner, block * g.inner, 1}
	case g.block == 0:
		return run{i * g.dim, g.dim, 0, 1}
	}
	from := i % g.blocks() * g.block
	return run{at: i/g.blocks()*g.dim + from, n: min(g.block, g.dim-from), scale: i}
}

// each shares runs over p, cut into pieces of at most chunk elements.
func (g *grain) each(p *op.Pool, f func(r run)) {
	if g.total == 0 {
		return
	}
	n := g.runs()
	const enough = 1 << 14 // elements to make a piece of work of
	p.Rows(n, enough*n/g.total+1, func(from, to int) {
		for i := from; i < to; i++ {
			r := g.run(i)
			for at := 0; at < r.n; at += chunk {
				f(run{r.at + at, min(chunk, r.n-at), r.scale + at*r.step, r.step})
			}
		}
	})
}
