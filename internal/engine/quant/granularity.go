package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A granularity is per-tensor, per-axis, or blockwise along an axis.
type granularity struct {
	total             int // elements
	outer, dim, inner int // the axes before, the axis, those after it
	block             int // block size along the axis; 0 for per-axis
	single            bool
}

// granularityOf reads the shapes of a tensor and its scale (ONNX QuantizeLinear, "supported quantization granularities").
func granularityOf(n *op.Node, x, scale *ir.Array) (*granularity, error) {
	g := &granularity{total: int(x.Elems()), single: scale.Elems() == 1}
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
			return nil, fmt.Errorf("scale is %s, want a scalar or %d elements, one per index of axis %d", scale, x.Shape[at], at)
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

// A run is contiguous elements that share a scale, if step is 0, or have contiguous scales.
type run struct{ at, n, scale, step int }

// chunk is the number of elements processed at once.
const chunk = 2048

// runs is the number of runs.
func (g *granularity) runs() int {
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

func (g *granularity) blocks() int { return (g.dim + g.block - 1) / g.block }

func (g *granularity) run(i int) run {
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

// runFrom is the run of element at, from there on.
func (g *granularity) runFrom(at int) run {
	if g.single {
		return run{at: at, n: g.total - at}
	}
	r := g.run(g.runOf(at))
	skip := at - r.at
	return run{at, r.n - skip, r.scale + skip*r.step, r.step}
}

// runOf is the run of element at, if scales differ.
func (g *granularity) runOf(at int) int {
	switch {
	case g.inner != 1:
		return at / g.inner
	case g.block == 0:
		return at / g.dim
	}
	return at/g.dim*g.blocks() + at%g.dim/g.block
}

// along returns the number of consecutive indices of the rows of a matrix that share scales, if element (k, n) of k×n ones is row·k + col·n. It
// is 0 if scales differ otherwise.
func (g *granularity) along(k, n, row, col int) int {
	switch {
	case g.single || col == g.inner && n == g.dim && g.block == 0:
		return k
	case row == g.inner && k == g.dim:
		return max(g.block, 1)
	}
	return 0
}

// each distributes the runs over p, cut into pieces of at most chunk elements.
func (g *granularity) each(p *op.Pool, f func(r run)) {
	if g.total == 0 {
		return
	}
	n := g.runs()
	const enough = 1 << 14 // minimum number of elements per task
	p.Rows(n, enough*n/g.total+1, func(from, to int) {
		for i := from; i < to; i++ {
			r := g.run(i)
			for at := 0; at < r.n; at += chunk {
				f(run{r.at + at, min(chunk, r.n-at), r.scale + at*r.step, r.step})
			}
		}
	})
}
