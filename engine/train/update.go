package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

// An update changes weights W by their gradient G and by what it keeps of earlier ones.
//
// Inputs are W, G, the states and hyper: the learning rate, the number of the step from 1 on, the factor that
// gradients are multiplied by, and weight decay. A factor that is not finite leaves everything as it is: so a step
// whose gradients overflowed is left out. The output is the sum of the squares of factor·G.
//
// With attribute keep_zeros a weight that is 0 stays so, with states of 0: pruned weights do. With attribute max_norm the weights of each
// unit, one index of axis norm_axis, are scaled down to that length after the update (Srivastava et al. 2014, section 5.1).
type update struct {
	name   string
	states int // how many there may be
	needed int // how many there must be
	check  func(n *op.Node, in []*ir.Array) error
	rule   func(n *op.Node, h hyper) func(b batch)
}

// hyper is what a step of training is done with.
type hyper struct{ rate, step, factor, decay float64 }

// A batch is a block of weights, of their gradients times the factor, which may be overwritten, and of their states.
type batch struct {
	w, g   []float32
	states [2][]float32
}

// updateBlock is how many weights are worked on at a time: all that is read of them stays in the first-level cache.
const updateBlock = 1024

func updates() []op.Op {
	var rows []op.Op
	for _, u := range []update{
		{"SGDUpdate", 1, 0, checkMomentum, sgd},
		{"AdamUpdate", 2, 2, checkBetas, adam},
	} {
		writes := []int{0}
		for i := range u.states {
			writes = append(writes, 2+i)
		}
		rows = append(rows, op.Op{Type: u.name, Shape: u.shape, Work: updateWork, Run: u.run, Writes: writes, Impure: true})
	}
	return rows
}

func (u update) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	w, err := tensor(in, 0, "W", ir.Float)
	if err != nil {
		return nil, err
	}
	if states := len(in) - 3; states < u.needed || states > u.states {
		return nil, fmt.Errorf("%d inputs are given: W, G, %d to %d states and hyper are needed", len(in), u.needed, u.states)
	}
	for i := 1; i < len(in)-1; i++ {
		if i > 1+u.needed && in[i] == nil {
			continue
		}
		if err := like(w, in, i, fmt.Sprint(i)); err != nil {
			return nil, err
		}
	}
	if err := floats(in, len(in)-1, "hyper", 4); err != nil {
		return nil, err
	}
	if err := checkNorm(n, w); err != nil {
		return nil, err
	}
	return []ir.Spec{one(ir.Float)}, u.check(n, in)
}

// updateWork is a sum for each piece of the weights, or for each unit.
func updateWork(n *op.Node, in []*ir.Array, _ int) int64 {
	size := pieces(int(in[0].Elems()))
	if n.Float("max_norm", 0) > 0 {
		size = max(size, units(n, in[0]).n)
	}
	return block.Bytes[float64](size)
}

func (u update) run(c *op.Call) error {
	h := hyperOf(c.In[len(c.In)-1])
	w, g := ir.View[float32](c.In[0]), ir.View[float32](c.In[1])
	step := func(batch) {}
	finite := !math.IsInf(h.factor, 0) && !math.IsNaN(h.factor)
	if finite {
		step = u.rule(c.Node, h)
	}
	var states [2][]float32
	for i := range len(c.In) - 3 {
		if c.In[2+i] != nil {
			states[i] = ir.View[float32](c.In[2+i])
		}
	}
	keep := c.Bool("keep_zeros", false)
	squares := sumPieces(c.Pool, len(w), partial(c, len(w)), func(from, to int) float64 {
		var gradient [updateBlock]float32
		for at := from; finite && at < to; at += updateBlock {
			b := batch{w: w[at:min(to, at+updateBlock)]}
			b.g = gradient[:len(b.w)]
			kernel.MulScalar(b.g, g[at:at+len(b.w)], float32(h.factor))
			for i, s := range states {
				if s != nil {
					b.states[i] = s[at : at+len(b.w)]
				}
			}
			if keep {
				b.still()
			}
			step(b)
		}
		return kernel.ReduceSumSquare(g[from:to])
	})
	if finite {
		limitNorms(c, w)
	}
	if y := output[float32](c, 0); y != nil {
		y[0] = float32(squares * h.factor * h.factor)
	}
	return nil
}

func hyperOf(a *ir.Array) hyper {
	h := ir.View[float32](a)
	return hyper{float64(h[0]), float64(h[1]), float64(h[2]), float64(h[3])}
}

// still takes gradient and states from weights that are 0: no rule moves them then.
func (b batch) still() {
	for i, w := range b.w {
		if w != 0 {
			continue
		}
		b.g[i] = 0
		for _, s := range b.states {
			if s != nil {
				s[i] = 0
			}
		}
	}
}
