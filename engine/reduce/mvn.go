package reduce

import (
	"math"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func mvnOps() []op.Op {
	return []op.Op{{Type: "MeanVarianceNormalization", Since: 9, Shape: mvnShape, Run: runMVN, InPlace: []int{0}}}
}

// mvnEpsilon is added to the deviation by the function that defines the operator.
const mvnEpsilon = 1e-9

func mvnShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if _, err := mvnAxes(n, x); err != nil {
		return nil, err
	}
	return []ir.Spec{x.Spec()}, nil
}

func mvnAxes(n *op.Node, x *ir.Array) ([]bool, error) {
	axes := n.Ints("axes")
	if !n.Has("axes") {
		axes = []int64{0, 2, 3}
	}
	return axesMask(axes, len(x.Shape))
}

func runMVN(c *op.Call) error {
	reduced, err := mvnAxes(c.Node, c.In[0])
	if err != nil {
		return err
	}
	l := layoutOf(c.In[0].Shape, reduced)
	if c.In[0].DType == ir.Double {
		mvn[float64](c, l)
	} else {
		mvn[float32](c, l)
	}
	return nil
}

func mvn[T floating](c *op.Call, l layout) {
	in, out := block.Read[T](c.In[0]), block.Write[T](c.Out[0])
	c.Pool.Rows(l.outputs, max(1, block.Grain/max(l.n, 1)), func(from, to int) {
		for o := from; o < to; o++ {
			base := l.kept.Offset(0, o)
			each := func(f func(at int, v float64)) {
				l.folded.Runs(0, l.n, func(_, n int, off []int) {
					for i := range n {
						at := base + off[0] + i*l.folded.Step(0)
						f(at, float64(in.One(at)))
					}
				})
			}
			sum, squares := 0.0, 0.0
			each(func(_ int, v float64) { sum += v })
			mean := sum / float64(l.n)
			each(func(_ int, v float64) { squares += (v - mean) * (v - mean) })
			deviation := math.Sqrt(squares/float64(l.n)) + mvnEpsilon
			each(func(at int, v float64) { out.Set(at, T((v-mean)/deviation)) })
		}
	})
}
