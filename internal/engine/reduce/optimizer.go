package reduce

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An optimizer updates tensors by their gradients and its state.
type optimizer struct {
	name   string
	states int // state tensors per optimized tensor
	steps  func(n *op.Node, rate float64, count int64) updater
}

// An updater computes the new value of an element x with gradient g, and of its state.
type updater func(x, g float64, state []float64) float64

var optimizers = []optimizer{
	{"Adagrad", 1, adagrad},
	{"Adam", 2, adam},
	{"Momentum", 1, momentum},
}

func optimizerOps() []op.Op {
	var ops []op.Op
	for _, o := range optimizers {
		ops = append(ops, op.Op{Domain: "ai.onnx.preview.training", Type: o.name, Since: 1, Shape: o.shape, Run: o.run})
	}
	return ops
}

// shape: inputs are the learning rate, the update count, and for all tensors their values, then their gradients, then
// their states. Outputs are values and states.
func (o optimizer) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	types := block.Of(ir.Float, ir.Double)
	if _, err := types.Tensor(in, 0, "R"); err != nil {
		return nil, err
	}
	if _, err := block.Of(ir.Int64).Tensor(in, 1, "T"); err != nil {
		return nil, err
	}
	if in[0].Elems() != 1 || in[1].Elems() != 1 {
		return nil, fmt.Errorf("inputs R and T are %s and %s, want scalars", in[0], in[1])
	}
	tensors := in[2:]
	if len(tensors)%(o.states+2) != 0 {
		return nil, fmt.Errorf("%d tensors, want a multiple of %d", len(tensors), o.states+2)
	}
	count := len(tensors) / (o.states + 2)
	for i := range tensors {
		a, err := types.Tensor(in, i+2, "inputs")
		if err != nil {
			return nil, err
		}
		if x := tensors[i%count]; a.DType != x.DType || !slices.Equal(a.Shape, x.Shape) {
			return nil, fmt.Errorf("input %d is %s, want %s", i+2, a, x)
		}
	}
	if mode := n.Text("mode", ""); o.name == "Momentum" && mode != "standard" && mode != "nesterov" {
		return nil, fmt.Errorf("attribute mode is %q, want standard or nesterov", mode)
	}
	var specs []ir.Spec
	for range o.states + 1 {
		for _, x := range tensors[:count] {
			specs = append(specs, x.Spec())
		}
	}
	return specs, nil
}

func (o optimizer) run(c *op.Call) error {
	update := o.steps(c.Node, numbers(c.In[0])[0], ir.View[int64](c.In[1])[0])
	tensors := c.In[2:]
	count := len(tensors) / (o.states + 2)
	for i := range count {
		var ins, outs []*ir.Array
		for k := range o.states + 2 {
			ins = append(ins, tensors[k*count+i])
		}
		for k := range o.states + 1 {
			outs = append(outs, outputAt(c, k*count+i))
		}
		if ins[0].DType == ir.Double {
			optimize[float64](c, update, ins, outs)
		} else {
			optimize[float32](c, update, ins, outs)
		}
	}
	return nil
}

func optimize[T floatElement](c *op.Call, update updater, ins, outs []*ir.Array) {
	var in [][]T
	for _, a := range ins {
		in = append(in, ir.View[T](a))
	}
	var out []block.Writer[T]
	for _, a := range outs {
		out = append(out, block.Write[T](a))
	}
	c.Pool.Rows(len(in[0]), block.Grain/8, func(from, to int) {
		state := make([]float64, len(in)-2)
		for i := from; i < to; i++ {
			for k := range state {
				state[k] = float64(in[k+2][i])
			}
			out[0].Set(i, T(update(float64(in[0][i]), float64(in[1][i]), state)))
			for k, v := range state {
				out[k+1].Set(i, T(v))
			}
		}
	})
}

func adagrad(n *op.Node, rate float64, count int64) updater {
	norm, epsilon := float64(n.Float("norm_coefficient", 0)), float64(n.Float("epsilon", 1e-6))
	rate /= 1 + float64(count)*float64(n.Float("decay_factor", 0))
	return func(x, g float64, state []float64) float64 {
		g += norm * x
		state[0] += g * g
		return x - rate*g/(math.Sqrt(state[0])+epsilon)
	}
}

func adam(n *op.Node, rate float64, count int64) updater {
	norm, post := float64(n.Float("norm_coefficient", 0)), float64(n.Float("norm_coefficient_post", 0))
	alpha, beta := float64(n.Float("alpha", 0.9)), float64(n.Float("beta", 0.999))
	epsilon := float64(n.Float("epsilon", 1e-6))
	// Bias correction (Kingma and Ba, "Adam", 2015), of both moments in one factor of the rate.
	if count > 0 {
		rate *= math.Sqrt(1-math.Pow(beta, float64(count))) / (1 - math.Pow(alpha, float64(count)))
	}
	return func(x, g float64, state []float64) float64 {
		g += norm * x
		state[0] = alpha*state[0] + (1-alpha)*g
		state[1] = beta*state[1] + (1-beta)*g*g
		return (1 - post) * (x - rate*state[0]/(math.Sqrt(state[1])+epsilon))
	}
}

func momentum(n *op.Node, rate float64, count int64) updater {
	norm, alpha, beta := float64(n.Float("norm_coefficient", 0)), float64(n.Float("alpha", 0)),
		float64(n.Float("beta", 1))
	nesterov := n.Text("mode", "") == "nesterov"
	// By the specification, the first step adds the whole gradient.
	if count <= 0 {
		beta = 1
	}
	return func(x, g float64, state []float64) float64 {
		g += norm * x
		state[0] = alpha*state[0] + beta*g
		if nesterov {
			return x - rate*(g+alpha*state[0])
		}
		return x - rate*state[0]
	}
}
