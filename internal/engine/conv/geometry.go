package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A Geometry is the dimensions of a convolution: for each image and group of channels, a product of the group's
// weights, OutC by Depth, with the patches under the window, Depth by OutArea.
type Geometry struct {
	*window
	Batch, Groups int
	InC, OutC     int // channels of one group
}

// GeometryOf derives it from a node's attributes and the shapes of its input X, (N, C, D1, D2, …), and its weights W,
// (M, C/group, k1, k2, …).
func GeometryOf(n *op.Node, x, w []int64) (*Geometry, error) {
	if len(x) < 3 || len(w) != len(x) {
		return nil, fmt.Errorf("X has rank %d and W rank %d, want the same and at least 3", len(x), len(w))
	}
	groups := n.Int("group", 1)
	switch {
	case groups < 1 || w[0]%groups != 0:
		return nil, fmt.Errorf("group is %d, want a divisor of the %d output channels of W", groups, w[0])
	case x[1]%groups != 0 || x[1]/groups != w[1]:
		return nil, fmt.Errorf("X has %d channels, W has %d in each of %d groups", x[1], w[1], groups)
	}
	win, err := windowOf(n, x[2:], w[2:], floorExtent)
	if err != nil {
		return nil, err
	}
	return &Geometry{win, int(x[0]), int(groups), int(w[1]), int(w[0] / groups)}, nil
}

// Depth is the number of products that are summed for one element of the output.
func (g *Geometry) Depth() int { return g.InC * g.kernelSize() }

// OutArea is the number of elements of one channel of the output.
func (g *Geometry) OutArea() int { return g.outLen() }

// InArea is the number of elements of one channel of the input.
func (g *Geometry) InArea() int { return g.inLen() }

// Product is the shape of the product for one image and group.
func (g *Geometry) Product() gemm.Shape {
	return gemm.Shape{M: g.OutC, N: g.OutArea(), K: g.Depth()}
}

// Products is the number of products.
func (g *Geometry) Products() int { return g.Batch * g.Groups }

// OutShape is the shape of the output: (N, M, O1, O2, …).
func (g *Geometry) OutShape() []int64 {
	shape := []int64{int64(g.Batch), int64(g.Groups * g.OutC)}
	for _, d := range g.out {
		shape = append(shape, int64(d))
	}
	return shape
}

// Input is the part of x that product i reads.
func Input[T any](g *Geometry, x []T, i int) []T { return part(x, i, g.InC*g.inLen()) }

// Output is the part of y that product i writes.
func Output[T any](g *Geometry, y []T, i int) []T { return part(y, i, g.OutC*g.OutArea()) }

// Weights is the part of w that product i reads.
func Weights[T any](g *Geometry, w []T, i int) []T {
	return part(w, i%g.Groups, g.OutC*g.Depth())
}

// Pointwise reports whether the patches are the input itself: a kernel of size 1 with stride 1.
func (g *Geometry) Pointwise() bool {
	for i := range g.in {
		if g.kernel[i] != 1 || g.stride[i] != 1 || g.begin[i] != 0 || g.end[i] != 0 {
			return false
		}
	}
	return true
}
