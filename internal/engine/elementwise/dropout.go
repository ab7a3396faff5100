package elementwise

import (
	"fmt"
	"hash/fnv"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// dropoutOps: training is possible from opset 12 on; the mask has the data's type below 10, then bool.
func dropoutOps() []op.Op {
	var ops []op.Op
	for _, o := range []op.Op{
		{Since: 7, Shape: dropoutShape(false), Run: runDropout},
		{Since: 10, Shape: dropoutShape(true), Run: runDropout},
		{Since: 12, Shape: trainingShape, Run: runTraining, Impure: true},
	} {
		o.Type, o.Work, o.InPlace = "Dropout", mapWork, []int{0}
		ops = append(ops, o)
	}
	return ops
}

const dropped = block.Floats | block.Float8

func dropoutShape(boolMask bool) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		x, err := dropped.Tensor(in, 0, "data")
		if err != nil {
			return nil, err
		}
		mask := x.Spec()
		if boolMask {
			mask.DType = ir.Bool
		}
		return []ir.Spec{x.Spec(), mask}, nil
	}
}

func trainingShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if err := scalarIn(dropped, in, 1, "ratio"); err != nil {
		return nil, err
	}
	if err := scalarIn(block.Bool, in, 2, "training_mode"); err != nil {
		return nil, err
	}
	return dropoutShape(true)(n, in)
}

// scalarIn checks an optional input of one element.
func scalarIn(types block.Set, in []*ir.Array, i int, name string) error {
	if op.Opt(in, i) == nil {
		return nil
	}
	a, err := types.Tensor(in, i, name)
	if err != nil {
		return err
	}
	if a.Elems() != 1 {
		return fmt.Errorf("input %s is %s, want a scalar", name, a)
	}
	return nil
}

// runDropout copies the data.
func runDropout(c *op.Call) error {
	if y := c.Out[0]; y != nil {
		copy(y.Data, c.In[0].Data)
	}
	if len(c.Out) < 2 || c.Out[1] == nil {
		return nil
	}
	return fillOnes(c, c.Out[1])
}

func fillOnes(c *op.Call, mask *ir.Array) error {
	switch dt := mask.DType; dt {
	case ir.Bool:
		block.Fill(ir.View[bool](mask), true)
	case ir.Double:
		block.Fill(ir.View[float64](mask), 1)
	case ir.Float, ir.Float16, ir.BFloat16:
		w := block.Write[float32](mask)
		for i := range int(mask.Elems()) {
			w.Set(i, 1)
		}
	default:
		return unexpected(c, dt)
	}
	return nil
}

// runTraining drops elements if training_mode is set, and scales the others so that the expected sum is unchanged.
func runTraining(c *op.Call) error {
	ratio, scale, err := dropoutRatio(c)
	if err != nil {
		return err
	}
	mode := c.Opt(2)
	if mode == nil || !ir.View[bool](mode)[0] || ratio == 0 {
		return runDropout(c)
	}
	switch dt := c.In[0].DType; dt {
	case ir.Float, ir.Float16, ir.BFloat16:
		drop[float32](c, ratio, scale)
	case ir.Double:
		drop[float64](c, ratio, scale)
	default:
		return unexpected(c, dt)
	}
	return nil
}

// dropoutRatio is the fraction of elements to drop, and the scale of the others, which is computed in the ratio's type
// as in onnx.reference.
func dropoutRatio(c *op.Call) (ratio, scale float64, err error) {
	single := float32(0.5)
	if a := c.Opt(1); a != nil {
		switch dt := a.DType; {
		case dt == ir.Double:
			ratio = ir.View[float64](a)[0]
			return ratio, 1 / (1 - ratio), checkRatio(ratio)
		case block.Float8.Has(dt):
			return 0, 0, unexpected(c, dt)
		}
		single = block.Read[float32](a).One(0)
	}
	return float64(single), float64(1 / (1 - single)), checkRatio(float64(single))
}

func checkRatio(ratio float64) error {
	if !(ratio >= 0 && ratio < 1) {
		return fmt.Errorf("input ratio is %v, want a value in [0, 1)", ratio)
	}
	return nil
}

func drop[T real](c *op.Call, ratio, scale float64) {
	random := newTwister(dropoutSeed(c.Node))
	in := block.Read[T](c.In[0])
	out, mask := optional[T](c.Out, 0), optional[bool](c.Out, 1)
	for i := range int(c.In[0].Elems()) {
		keep := random.uniform() >= ratio
		factor := T(0)
		if keep {
			factor = 1
		}
		// Multiplied by 0 instead of replaced, as in onnx.reference: a dropped Inf becomes NaN.
		out(i, in.One(i)*factor*T(scale))
		mask(i, keep)
	}
}

// optional writes elements of an optional output.
func optional[T ir.Element](outs []*ir.Array, i int) func(at int, v T) {
	if i >= len(outs) || outs[i] == nil {
		return func(int, T) {}
	}
	return block.Write[T](outs[i]).Set
}

// dropoutSeed is the attribute seed, or one derived from the session's that differs between nodes.
func dropoutSeed(n *op.Node) uint32 {
	if n.Has("seed") {
		return uint32(n.Int("seed", 0))
	}
	h := fnv.New64a()
	h.Write([]byte(n.Label))
	sum := h.Sum64() ^ n.Seed
	return uint32(sum ^ sum>>32)
}
