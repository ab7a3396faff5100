package backward

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// softmaxes are the gradients of normalizations along attribute axis, from their outputs:
//
//	dX = SoftmaxGrad(Y, dY) = Y·(dY - Σ dY·Y)
//	dX = LogSoftmaxGrad(Y, dY) = dY - eʸ·Σ dY
func softmaxes() []op.Op {
	return []op.Op{
		{Type: "SoftmaxGrad", Shape: alongShape, InPlace: []int{1},
			Run: op.FloatOrDouble(alongLanes(softmaxRow, softmaxLane[float32]), alongLanes(nil, softmaxLane[float64]))},
		{Type: "LogSoftmaxGrad", Shape: alongShape, InPlace: []int{1},
			Run: op.FloatOrDouble(alongLanes(logSoftmaxRow, logSoftmaxLane[float32]),
				alongLanes(nil, logSoftmaxLane[float64]))},
	}
}

func alongShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	specs, err := alike(2)(n, in)
	if err != nil {
		return nil, err
	}
	_, err = op.Axis(n.Int("axis", -1), len(in[0].Shape))
	return specs, err
}

// A lane is n elements of an axis with stride step.
type lane struct{ at, n, step int }

// alongLanes processes each lane; row, if not nil, those with contiguous elements.
func alongLanes[T number](row func(dx, y, dy []T), each func(l lane, dx, y, dy []T)) func(*op.Call) error {
	return func(c *op.Call) error {
		y, dy, dx := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
		axis, err := op.Axis(c.Int("axis", -1), len(c.In[0].Shape))
		if err != nil || len(dx) == 0 {
			return err
		}
		n, inner := int(c.In[0].Shape[axis]), int(op.Product(c.In[0].Shape[axis+1:]))
		c.Pool.Rows(len(dx)/n, grain/n, func(from, to int) {
			for i := from; i < to; i++ {
				if at := i * n; inner == 1 && row != nil {
					row(dx[at:at+n], y[at:at+n], dy[at:at+n])
				} else {
					each(lane{i/inner*n*inner + i%inner, n, inner}, dx, y, dy)
				}
			}
		})
		return nil
	}
}

func softmaxRow(dx, y, dy []float32) {
	sum := kernel.Dot(y, dy)
	kernel.SubScalar(dx, dy, float32(sum))
	kernel.Mul(dx, dx, y)
}

func softmaxLane[T number](l lane, dx, y, dy []T) {
	sum := 0.0
	for i, at := 0, l.at; i < l.n; i, at = i+1, at+l.step {
		sum += float64(float64(y[at]) * float64(dy[at]))
	}
	for i, at := 0, l.at; i < l.n; i, at = i+1, at+l.step {
		dx[at] = y[at] * (dy[at] - T(sum))
	}
}

func logSoftmaxRow(dx, y, dy []float32) {
	sum := float32(kernel.ReduceSum(dy))
	var e [derivativeBlock]float32
	for i := 0; i < len(dx); i += len(e) {
		n := min(len(e), len(dx)-i)
		kernel.Exp(e[:n], y[i:i+n])
		kernel.MulScalar(e[:n], e[:n], sum)
		kernel.Sub(dx[i:i+n], dy[i:i+n], e[:n])
	}
}

func logSoftmaxLane[T number](l lane, dx, y, dy []T) {
	sum := 0.0
	for i, at := 0, l.at; i < l.n; i, at = i+1, at+l.step {
		sum += float64(dy[at])
	}
	for i, at := 0, l.at; i < l.n; i, at = i+1, at+l.step {
		dx[at] = dy[at] - T(math.Exp(float64(y[at]))*sum)
	}
}
