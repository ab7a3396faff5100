package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// depthToSpace are DepthToSpace and SpaceToDepth.
func depthToSpace() []op.Op {
	return []op.Op{
		{Type: "DepthToSpace", Since: 1, Shape: depthToSpaceShape, Run: runDepthToSpace},
		{Type: "SpaceToDepth", Since: 1, Shape: spaceToDepthShape, Run: runSpaceToDepth},
	}
}

// image is input 0, which must be [N,C,H,W], and the checked attributes.
func image(n *op.Node, in []*ir.Array) (a *ir.Array, block int64, err error) {
	if a, err = op.Arg(in, 0, "input"); err != nil {
		return nil, 0, err
	}
	if len(a.Shape) != 4 {
		return nil, 0, fmt.Errorf("input is %s, want rank 4", a)
	}
	if mode := n.Text("mode", "DCR"); mode != "DCR" && mode != "CRD" {
		return nil, 0, fmt.Errorf("mode is %q, want DCR or CRD", mode)
	}
	if block = n.Int("blocksize", 0); block < 1 || block > 1<<15 {
		return nil, 0, fmt.Errorf("blocksize is %d, want 1 to %d", block, 1<<15)
	}
	return a, block, nil
}

func depthToSpaceShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, b, err := image(n, in)
	if err != nil {
		return nil, err
	}
	s := a.Shape
	if s[1]%(b*b) != 0 {
		return nil, fmt.Errorf("%d channels are not a multiple of the %d pixels of a block", s[1], b*b)
	}
	return op.One(a.DType, s[0], s[1]/(b*b), s[2]*b, s[3]*b)
}

func spaceToDepthShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, b, err := image(n, in)
	if err != nil {
		return nil, err
	}
	s := a.Shape
	if s[2]%b != 0 || s[3]%b != 0 {
		return nil, fmt.Errorf("shape %v cannot be cut into blocks of %d×%d", s, b, b)
	}
	return op.One(a.DType, s[0], s[1]*b*b, s[2]/b, s[3]/b)
}

func runDepthToSpace(c *op.Call) error {
	b := c.Int("blocksize", 0)
	deep, wide := depthStrides(c, c.In[0].Shape, b), spaceStrides(c.Out[0].Shape, b)
	move(c.Pool, reordered(c.Out[0].Shape, b, wide, deep), c.Out[0], c.In[0])
	return nil
}

func runSpaceToDepth(c *op.Call) error {
	b := c.Int("blocksize", 0)
	deep, wide := depthStrides(c, c.Out[0].Shape, b), spaceStrides(c.In[0].Shape, b)
	move(c.Pool, reordered(c.In[0].Shape, b, deep, wide), c.Out[0], c.In[0])
	return nil
}

// reordered visits the axes [N, C, H, block, W, block] of a wide image of that shape.
func reordered(wide []int64, b int64, dst, src []int64) *stridedTransfer {
	return newStrided([]int64{wide[0], wide[1], wide[2] / b, b, wide[3] / b, b}, dst, src)
}

// spaceStrides are the strides of [N, C, H, block, W, block] in an image of that shape.
func spaceStrides(shape []int64, b int64) []int64 {
	s := op.Strides(shape)
	return []int64{s[0], s[1], b * s[2], s[2], b, 1}
}

// depthStrides are the same if the block is part of the channels: as outer axis, or as inner axis in mode CRD.
func depthStrides(c *op.Call, shape []int64, b int64) []int64 {
	s := op.Strides(shape)
	if c.Text("mode", "DCR") == "CRD" {
		return []int64{s[0], b * b * s[1], s[2], b * s[1], 1, s[1]}
	}
	channels := shape[1] / (b * b)
	return []int64{s[0], s[1], s[2], b * channels * s[1], 1, channels * s[1]}
}
