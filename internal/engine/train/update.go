package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// An update changes weights W by their gradient G and by optimizer states.
//
// Inputs are W, G, the states and hyper: the learning rate, the step number from 1, the factor of gradients, and weight
// decay. The output is the sum of the squares of factor·G. If it is not finite, nothing changes: a step whose gradients
// overflowed is skipped.
//
// With attribute keep_zeros a weight of 0 stays 0, with states of 0: pruned weights are not trained. With attribute
// max_norm the weights of each unit, one index of axis norm_axis, are scaled to that norm after the update (Srivastava
// et al. 2014, section 5.1). The axes before norm_axis are divided into norm_blocks equal parts, 1 by default, with units
// of their own, such as the groups of a ConvTranspose.
type update struct {
	name   string
	writes []int
	check  func(n *op.Node, in []*ir.Array) error // of the states, inputs 2 to the last but one, and of attributes
	rule   func(n *op.Node, h hyper) func(b batch)
	states func(c *op.Call) stateStore
}

// hyper is the hyperparameters of a step.
type hyper struct{ rate, step, factor, decay float64 }

// A batch is a block of weights, of their gradients times the factor, which may be overwritten, and of their states.
type batch struct {
	w, g   []float32
	states [2][]float32
}

// A stateStore holds the states of all weights.
type stateStore interface {
	load(at int, states *[2][]float32) // buffers for a block are given and may be replaced
	store(at int, states [2][]float32) // after they were changed
}

// updateBlock is the number of weights per pass: all data of a block fits into the first-level cache.
const updateBlock = 1024

func updates() []op.Op {
	var rows []op.Op
	for _, u := range []update{
		{"SGDUpdate", []int{0, 2}, checkMomentum, sgd, plainStates},
		{"AdamUpdate", []int{0, 2, 3}, checkAdam, adam, plainStates},
		{"Adam8Update", []int{0, 2, 3, 4, 5}, checkAdam8, adam, quantizedStates},
	} {
		rows = append(rows, op.Op{Type: u.name, Shape: u.shape, Work: updateWork, Run: u.run, Writes: u.writes,
			Impure: true})
	}
	return rows
}

func (u update) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	w, err := tensor(in, 0, "W", ir.Float)
	if err != nil {
		return nil, err
	}
	if err := like(w, in, 1, "G"); err != nil {
		return nil, err
	}
	if err := u.check(n, in); err != nil {
		return nil, err
	}
	if err := floats(in, len(in)-1, "hyper", 4); err != nil {
		return nil, err
	}
	return []ir.Spec{scalarSpec(ir.Float)}, checkNorm(n, w)
}

// inputs checks the number of inputs.
func inputs(in []*ir.Array, least, most int) error {
	if len(in) < least || len(in) > most {
		return fmt.Errorf("%d inputs, want W, G, %d to %d states and hyper", len(in), least-3, most-3)
	}
	return nil
}

// updateWork is the scratch of one sum per piece of the weights, or per unit.
func updateWork(n *op.Node, in []*ir.Array, _ int) int64 {
	size := pieces(int(in[0].Elems()))
	if n.Float("max_norm", 0) > 0 {
		_, l := units(n, in[0])
		size = max(size, l.n)
	}
	return block.Bytes[float64](size)
}

func (u update) run(c *op.Call) error {
	h := hyperOf(c.In[len(c.In)-1])
	// Of the gradient times its factor, which is not written back.
	squares := float32(sumOfSquares(c, c.In[1]) * h.factor * h.factor)
	// An overflow of float16 gradients: the step is skipped, and the caller sees the sum.
	if x := float64(squares); !math.IsInf(x, 0) && !math.IsNaN(x) {
		u.step(c, h)
		limitNorms(c)
	}
	if y := output[float32](c, 0); y != nil {
		y[0] = squares
	}
	return nil
}

// step updates all weights.
func (u update) step(c *op.Call, h hyper) {
	w, g := ir.View[float32](c.In[0]), ir.View[float32](c.In[1])
	rule, states, keep := u.rule(c.Node, h), u.states(c), c.Bool("keep_zeros", false)
	c.Pool.For(pieces(len(w)), func(i int) {
		from, to := i*piece, min(len(w), (i+1)*piece)
		var buffer [3][updateBlock]float32
		for at := from; at < to; at += updateBlock {
			n := min(to-at, updateBlock)
			b := batch{w: w[at : at+n], g: buffer[0][:n], states: [2][]float32{buffer[1][:n], buffer[2][:n]}}
			kernel.MulScalar(b.g, g[at:at+n], float32(h.factor))
			states.load(at, &b.states)
			// Before the rule, as momentum would move pruned weights away from 0.
			if keep {
				b.clearPruned()
			}
			rule(b)
			states.store(at, b.states)
		}
	})
}

func hyperOf(a *ir.Array) hyper {
	h := ir.View[float32](a)
	return hyper{float64(h[0]), float64(h[1]), float64(h[2]), float64(h[3])}
}

// clearPruned clears gradient and states of weights that are 0, so that no optimizer changes them.
func (b batch) clearPruned() {
	for i, w := range b.w {
		if w != 0 {
			continue
		}
		b.g[i] = 0
		for _, s := range b.states {
			s[i] = 0
		}
	}
}

// plain are float32 states with the shape of the weights; nil for missing ones.
type plain [2][]float32

func plainStates(c *op.Call) stateStore {
	var p plain
	for i := 2; i < len(c.In)-1; i++ {
		if c.In[i] != nil {
			p[i-2] = ir.View[float32](c.In[i])
		}
	}
	return p
}

func (p plain) load(at int, states *[2][]float32) {
	for i, s := range p {
		if s != nil {
			states[i] = s[at : at+len(states[i])]
		}
	}
}

func (p plain) store(int, [2][]float32) {}
