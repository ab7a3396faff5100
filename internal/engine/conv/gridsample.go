package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// gridSamples are GridSample; version 20 renamed the modes and allows any number of axes.
func gridSamples() []op.Op {
	row := func(since int64, modes map[string]int) op.Op {
		return op.Op{
			Type: "GridSample", Since: since,
			Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
				if _, err := gridOf(n, modes); err != nil {
					return nil, err
				}
				return gridShape(n, in)
			},
			Work: gridWork,
			Run: func(c *op.Call) error {
				g, err := gridOf(c.Node, modes)
				if err != nil || c.Out[0].Elems() == 0 {
					return err
				}
				return g.run(c)
			},
		}
	}
	return wide(
		row(16, map[string]int{"": 2, "nearest": 1, "bilinear": 2, "bicubic": 4}),
		row(20, map[string]int{"": 2, "nearest": 1, "linear": 2, "cubic": 4}),
	)
}

// A grid is the attributes of GridSample.
type grid struct {
	taps    int // along each axis: 1 nearest, 2 linear, 4 cubic
	padding string
	corners bool // -1 and 1 are the centres of the outer elements, not their edges
}

func gridOf(n *op.Node, modes map[string]int) (*grid, error) {
	g := &grid{modes[n.Text("mode", "")], n.Text("padding_mode", "zeros"), n.Bool("align_corners", false)}
	if g.taps == 0 {
		return nil, fmt.Errorf("unknown mode %q", n.Text("mode", ""))
	}
	if g.padding != "zeros" && g.padding != "border" && g.padding != "reflection" {
		return nil, fmt.Errorf("padding_mode is %q, want zeros, border or reflection", g.padding)
	}
	return g, nil
}

func gridShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	grid, err := op.Arg(in, 1, "grid")
	if err != nil {
		return nil, err
	}
	if err := number.Check(x.DType); err != nil {
		return nil, fmt.Errorf("input X: %w", err)
	}
	if !grid.DType.IsFloat() {
		return nil, fmt.Errorf("input grid is %s, want a float type", grid)
	}
	rank := len(x.Shape)
	if rank < 3 || len(grid.Shape) != rank || grid.Shape[rank-1] != int64(rank-2) || grid.Shape[0] != x.Shape[0] {
		return nil, fmt.Errorf("input grid is %s for X %s, want (N, D1, …, %d)", grid, x, rank-2)
	}
	shape := append([]int64{x.Shape[0], x.Shape[1]}, grid.Shape[1:rank-1]...)
	for i, d := range x.Shape[2:] {
		if d == 0 && op.Product(shape) > 0 {
			return nil, fmt.Errorf("input X is %s, axis %d is empty", x, i+2)
		}
	}
	return like(x, shape...)
}

// gridWork is the memory of X and Y as float64 for integer types.
func gridWork(n *op.Node, in []*ir.Array, _ int) int64 {
	if in[0].DType.IsFloat() {
		return 0
	}
	specs, err := gridShape(n, in)
	if err != nil {
		return 0
	}
	return aligned(8*in[0].Elems()) + aligned(8*specs[0].Elems())
}

func (g *grid) run(c *op.Call) error {
	x, y := c.In[0], c.Out[0]
	if x.DType == ir.Float {
		sampleGrid(g, c, ir.View[float32](x), ir.View[float32](y))
		return nil
	}
	if x.DType == ir.Double {
		sampleGrid(g, c, ir.View[float64](x), ir.View[float64](y))
		return nil
	}
	buf := scratch[float64](c.Work)
	from, to := buf.take(int(x.Elems())), buf.take(int(y.Elems()))
	load(from, x)
	sampleGrid(g, c, from, to)
	store(y, to)
	return nil
}

// sampleGrid computes for each grid point the elements of a channel that it samples and their weights, and sums them up
// for all channels.
func sampleGrid[F float](g *grid, c *op.Call, x, y []F) {
	dims := c.In[0].Shape[2:]
	channels, size := int(c.In[0].Shape[1]), int(op.Product(dims))
	places := int(op.Product(c.Out[0].Shape[2:]))
	c.Pool.Rows(len(y)/channels, 1+sampleGrain/channels, func(from, to int) {
		var s sampler[F]
		at := make([]float64, len(dims))
		for i := from; i < to; i++ {
			number.Read(at, c.In[1], i*len(dims))
			s.reset()
			for axis, length := range dims {
				// A point is (x, y, z): its first coordinate is that of the last axis.
				locate(g, &s, F(at[len(at)-1-axis]), int(length))
			}
			first := i / places * channels
			for ch := first; ch < first+channels; ch++ {
				y[ch*places+i%places] = s.sum(part(x, ch, size))
			}
		}
	})
}

const sampleGrain = 1 << 10 // minimum number of samples per task

// locate adds an axis to the sample, for a coordinate from -1 to 1.
func locate[F float](g *grid, s *sampler[F], at F, length int) {
	lo, hi := F(-0.5), F(length)-0.5
	p := ((at+1)*F(length) - 1) / 2
	if g.corners {
		lo, hi = 0, F(length-1)
		p = (at + 1) / 2 * F(length-1)
	}
	if g.taps == 1 {
		p = F(math.RoundToEven(float64(p)))
	}
	// The coordinate is mapped here and each tap again in inside, as in the reference implementation: taps of a
	// coordinate inside the image may be outside.
	if p < lo || p > hi {
		switch g.padding {
		case "border":
			p = min(max(p, 0), F(length-1))
		case "reflection":
			p = reflect(p, lo, hi)
		}
	}
	if !(p > -most && p < most) { // NaN, or far outside
		p = -most
	}
	base := F(math.Floor(float64(p)))
	var places [4]int
	var weights [4]F
	for k := range g.taps {
		places[k] = g.inside(int(base)+k-(g.taps-1)/2, length, float64(lo), float64(hi))
		weights[k] = F(g.weight(float64(k-(g.taps-1)/2) - float64(p-base)))
	}
	s.axis(length, places[:g.taps], weights[:g.taps])
}

// inside is position p after applying the padding mode, -1 for zero padding.
func (g *grid) inside(p, length int, lo, hi float64) int {
	switch {
	case p >= 0 && p < length:
		return p
	case g.padding == "border":
		return min(max(p, 0), length-1)
	case g.padding == "reflection":
		return min(max(int(reflect(float64(p), lo, hi)), 0), length-1)
	}
	return -1
}

// weight is the interpolation kernel at a distance.
func (g *grid) weight(distance float64) float64 {
	switch g.taps {
	case 1:
		return 1
	case 2:
		return triangle(distance)
	}
	return keys(distance, -0.75)
}

// reflect mirrors p at lo and hi until it is between them.
func reflect[F float](p, lo, hi F) F {
	if hi <= lo {
		return lo
	}
	over, from, back := lo-p, lo, hi
	if p > hi {
		over, from, back = p-hi, hi, lo
	}
	if over <= 0 {
		return p
	}
	n := F(math.Trunc(float64(over / (hi - lo)))) // whole periods beyond the border
	rest := over - n*(hi-lo)
	if math.Mod(float64(n), 2) != 0 {
		from = back
	}
	if from == lo {
		return lo + rest
	}
	return hi - rest
}
