package train

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A pointLoss is the mean of an elementwise loss of x and target. Inputs, outputs and attributes are those of a
// rowLoss.
type pointLoss struct {
	name string
	at   func(x, target float64) (loss, gradient float64)
}

func pointLosses() []op.Op {
	var rows []op.Op
	for _, l := range []pointLoss{
		{"MeanSquaredLoss", squareLoss},
		{"SigmoidCrossEntropyLoss", sigmoidEntropy},
	} {
		rows = append(rows, op.Op{Type: l.name, Shape: pointShape, Work: pointWork, Run: op.FloatOrDouble(
			func(c *op.Call) error { return runPoints[float32](c, l) },
			func(c *op.Call) error { return runPoints[float64](c, l) },
		)})
	}
	return rows
}

func squareLoss(x, t float64) (loss, gradient float64) {
	d := x - t
	return d * d, 2 * d
}

// sigmoidEntropy is -t·log σ(x) - (1-t)·log(1-σ(x)) without overflow.
func sigmoidEntropy(x, t float64) (loss, gradient float64) {
	e := math.Exp(-math.Abs(x))
	loss = max(x, 0) - float64(x*t) + math.Log1p(e)
	if x >= 0 {
		return loss, 1/(1+e) - t
	}
	return loss, e/(1+e) - t
}

func pointShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float, ir.Double)
	if err != nil {
		return nil, err
	}
	if err := like(x, in, 1, "target"); err != nil {
		return nil, err
	}
	if len(in) > 3 {
		if _, err := tokens(in, x); err != nil {
			return nil, err
		}
	}
	return []ir.Spec{scalarSpec(x.DType), x.Spec()}, floats(in, 2, "scale", 1)
}

// pointWork is the scratch of one sum per piece.
func pointWork(_ *op.Node, in []*ir.Array, _ int) int64 {
	return block.Bytes[float64](pieces(int(in[0].Elems())))
}

func runPoints[T number](c *op.Call, l pointLoss) error {
	x, target, dx := ir.View[T](c.In[0]), ir.View[T](c.In[1]), output[T](c, 1)
	count, size := len(x), len(x) // size is the number of elements of a token
	var keep []float32
	if len(c.In) > 3 {
		keep = ir.View[float32](c.In[3])
		count, size = 0, len(x)/len(keep)
		for _, k := range keep {
			if k != 0 {
				count += size
			}
		}
	}
	weight := float64(c.Float("weight", 1)) / float64(max(count, 1))
	factor := weight * float64(ir.View[float32](c.In[2])[0])
	sum := sumPieces(c.Pool, len(x), partial(c, len(x)), func(from, to int) (sum float64) {
		for i := from; i < to; i++ {
			if keep != nil && keep[i/size] == 0 {
				if dx != nil {
					dx[i] = 0
				}
				continue
			}
			loss, gradient := l.at(float64(x[i]), float64(target[i]))
			sum += loss
			if dx != nil {
				dx[i] = T(factor * gradient)
			}
		}
		return sum
	})
	if y := output[T](c, 0); y != nil {
		y[0] = T(weight * sum)
	}
	return nil
}
