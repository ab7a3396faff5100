package packedweight

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Granularity is the elements of a tensor that share a scale: per-tensor, per-axis, or blockwise along an axis.
type Granularity struct {
	total             int // elements
	outer, dim, inner int // the axes before, the axis, those after it
	block             int // block size along the axis; 0 for per-axis
	single            bool
}

// GranularityOf reads the shapes of a tensor and its scale (ONNX QuantizeLinear, "supported quantization
// granularities").
func GranularityOf(n *op.Node, x, scale *ir.Array) (*Granularity, error) {
	g := &Granularity{total: int(x.Elems()), single: scale.Elems() == 1}
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
			return nil, fmt.Errorf("scale is %s, want a scalar or %d elements, one per index of axis %d", scale,
				x.Shape[at], at)
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

// Elems is the number of elements of the tensor.
func (g *Granularity) Elems() int { return g.total }

// A Run is N contiguous elements, from At on, that share scale Scale, if Step is 0, or have contiguous scales, if it is
// 1.
type Run struct{ At, N, Scale, Step int }

// Chunk is the largest number of elements of a run that Each passes.
const Chunk = 2048

// runs is the number of runs.
func (g *Granularity) runs() int {
	switch {
	case g.single:
		return (g.total + Chunk - 1) / Chunk
	case g.inner != 1:
		return g.outer * g.dim
	case g.block == 0:
		return g.outer
	}
	return g.outer * g.blocks()
}

func (g *Granularity) blocks() int { return (g.dim + g.block - 1) / g.block }

func (g *Granularity) run(i int) Run {
	switch {
	case g.single:
		return Run{At: i * Chunk, N: min(Chunk, g.total-i*Chunk)}
	case g.inner != 1 && g.block == 0:
		return Run{At: i * g.inner, N: g.inner, Scale: i % g.dim}
	case g.inner != 1:
		block := i/g.dim*g.blocks() + i%g.dim/g.block
		return Run{i * g.inner, g.inner, block * g.inner, 1}
	case g.block == 0:
		return Run{i * g.dim, g.dim, 0, 1}
	}
	from := i % g.blocks() * g.block
	return Run{At: i/g.blocks()*g.dim + from, N: min(g.block, g.dim-from), Scale: i}
}

// runFrom is the run of element at, from there on.
func (g *Granularity) runFrom(at int) Run {
	if g.single {
		return Run{At: at, N: g.total - at}
	}
	r := g.run(g.runOf(at))
	skip := at - r.At
	return Run{at, r.N - skip, r.Scale + skip*r.Step, r.Step}
}

// runOf is the run of element at, if scales differ.
func (g *Granularity) runOf(at int) int {
	switch {
	case g.inner != 1:
		return at / g.inner
	case g.block == 0:
		return at / g.dim
	}
	return at/g.dim*g.blocks() + at%g.dim/g.block
}

// along returns the number of consecutive indices of the rows of a matrix that share scales, if element (k, n) of k×n
// ones is row·k + col·n. It is 0 if scales differ otherwise.
func (g *Granularity) along(k, n, row, col int) int {
	switch {
	case g.single || col == g.inner && n == g.dim && g.block == 0:
		return k
	// A block of the axis is consecutive rows, with scales of their own for each column.
	case row == g.inner && k == g.dim:
		return max(g.block, 1)
	}
	return 0
}

// Each distributes the runs over p, cut into pieces of at most Chunk elements.
func (g *Granularity) Each(p *op.Pool, f func(r Run)) {
	if g.total == 0 {
		return
	}
	n := g.runs()
	const enough = 1 << 14 // minimum number of elements per task
	p.Rows(n, enough*n/g.total+1, func(from, to int) {
		for i := from; i < to; i++ {
			r := g.run(i)
			for at := 0; at < r.N; at += Chunk {
				f(Run{r.At + at, min(Chunk, r.N-at), r.Scale + at*r.Step, r.Step})
			}
		}
	})
}
