package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// sums returns the operators on gradients before an update.
func sums() []op.Op {
	return []op.Op{
		{Type: "AccumulateGrad", Shape: accumulateShape, Run: accumulate, Writes: []int{0}, Impure: true},
		{Type: "SumSquares", Shape: squaresShape, Work: squaresWork, Run: sumSquares},
		{Type: "ClipFactor", Shape: clipShape, Run: clipFactor},
	}
}

func accumulateShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	sum, err := tensor(in, 0, "buffer", ir.Float)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{scalarSpec(ir.Float)}, like(sum, in, 1, "G")
}

// accumulate adds G to the accumulated gradient. The output is 0, since each node has one.
func accumulate(c *op.Call) error {
	sum, g := ir.View[float32](c.In[0]), ir.View[float32](c.In[1])
	c.Pool.Rows(len(sum), piece, func(from, to int) { kernel.Add(sum[from:to], sum[from:to], g[from:to]) })
	if y := output[float32](c, 0); y != nil {
		y[0] = 0
	}
	return nil
}

func squaresShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if len(in) == 0 {
		return nil, errors.New("no inputs")
	}
	for i := range in {
		if _, err := tensor(in, i, fmt.Sprint(i), ir.Float); err != nil {
			return nil, err
		}
	}
	return []ir.Spec{scalarSpec(ir.Float)}, nil
}

func squaresWork(_ *op.Node, in []*ir.Array, _ int) int64 {
	most := int64(0)
	for _, a := range in {
		most = max(most, a.Elems())
	}
	return block.Bytes[float64](pieces(int(most)))
}

// sumSquares is the sum of the squares of all elements of all inputs.
func sumSquares(c *op.Call) error {
	sum := 0.0
	for _, a := range c.In {
		sum += sumOfSquares(c, a)
	}
	ir.View[float32](c.Out[0])[0] = float32(sum)
	return nil
}

func sumOfSquares(c *op.Call, a *ir.Array) float64 {
	x := ir.View[float32](a)
	return sumPieces(c.Pool, len(x), partial(c, len(x)),
		func(from, to int) float64 { return kernel.ReduceSumSquare(x[from:to]) })
}

func clipShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if err := floats(in, 0, "hyper", 4); err != nil {
		return nil, err
	}
	for i := range in[1:] {
		if err := floats(in, 1+i, fmt.Sprint(1+i), 1); err != nil {
			return nil, err
		}
	}
	if limit := n.Float("max_norm", 0); !(limit > 0) {
		return nil, fmt.Errorf("attribute max_norm is %v, want a positive number", limit)
	}
	return []ir.Spec{{DType: ir.Float, Shape: []int64{4}}}, nil
}

// clipFactor multiplies the gradient factor by the one that limits the norm of all gradients, times that factor, to
// max_norm, as PyTorch's clip_grad_norm_. A norm that is not finite makes the factor NaN, so that updates change
// nothing.
func clipFactor(c *op.Call) error {
	hyper, sum := ir.View[float32](c.Out[0]), 0.0
	copy(hyper, ir.View[float32](c.In[0]))
	for _, a := range c.In[1:] {
		sum += float64(ir.View[float32](a)[0])
	}
	norm := math.Sqrt(sum) * math.Abs(float64(hyper[2]))
	if math.IsInf(norm, 0) || math.IsNaN(norm) {
		hyper[2] = float32(math.NaN())
		return nil
	}
	hyper[2] = float32(float64(hyper[2]) * min(1, float64(c.Float("max_norm", 0))/(norm+1e-6)))
	return nil
}
