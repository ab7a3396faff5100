package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func dropouts() []op.Op {
	return []op.Op{{Type: "SeededDropout", Shape: dropoutShape, InPlace: []int{0},
		Run: op.FloatOrDouble(dropout[float32], dropout[float64])}}
}

func dropoutShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float, ir.Double)
	if err != nil {
		return nil, err
	}
	if r := n.Float("ratio", 0.5); !(r >= 0 && r < 1) {
		return nil, fmt.Errorf("attribute ratio is %v, want 0 to below 1", r)
	}
	return []ir.Spec{x.Spec()}, stepInput(in, 1)
}

// dropout sets the fraction ratio of the elements to 0 and divides the others by 1-ratio (Srivastava et al. 2014,
// section 10). The mask depends on the index in the step, the step and attribute seed: the gradient is the same
// operator on the output's gradient.
func dropout[T number](c *op.Call) error {
	x, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	random, ratio := counterOf(c, 1, len(x)), decimal(c.Float("ratio", 0.5))
	limit := uint64(math.Round(ratio * (1 << 32)))
	factors := [2]T{T(1 / (1 - ratio)), 0}
	c.Pool.Rows(len(x), piece, func(from, to int) {
		for i := from; i < to; i++ {
			// The difference wraps below the limit, and its highest bit selects the factor 0: no branch, which would be
			// mispredicted.
			y[i] = x[i] * factors[(random.At(uint64(i))>>32-limit)>>63]
		}
	})
	return nil
}
