package recurrent

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// gradients are the gradients of RNN, GRU and LSTM by backpropagation through time (Werbos, 1990), on Float and Double:
//
//	dX, dW, dR, dB, dInitialH, dInitialC, dP =
//	  LSTMGrad(X, W, R, B, sequence_lens, initial_h, initial_c, P, Y, dY, dY_h, dY_c)
//
// with the attributes of the node; absent gradients are zero. The forward pass stores X and Y alone: gates and cells of
// one direction are recomputed in scratch memory, where the gradients of the gates replace them. Products with W, and
// those for the gradients of W and R, are made for all steps at once.
func gradients() []op.Op {
	var rows []op.Op
	for _, k := range []*kind{rnn, gru, lstm} {
		rows = append(rows, op.Op{
			Domain: "mcompress", Type: k.name + "Grad", Since: 1, Shape: k.gradientShape, Work: k.gradientWork,
			Run: op.FloatOrDouble(runGradient[float32](k), runGradient[float64](k)),
		})
	}
	return rows
}

// Inputs of the gradients after those of the node.
const (
	inY = iota + inP + 1
	inDY
	inDYH
	inDYC
)

// Outputs of the gradients.
const (
	outX = iota
	outW
	outR
	outB
	outH
	outC
	outP
)

// differentiated are the inputs that the outputs belong to.
var differentiated = []int{outX: inX, outW: inW, outR: inR, outB: inB, outH: inH, outC: inC, outP: inP}

func (k *kind) gradientLayer(n *op.Node, in []*ir.Array) (*layer, error) {
	dt := ir.Float
	if x := op.Opt(in, inX); x != nil && x.DType == ir.Double {
		dt = ir.Double
	}
	for _, a := range in {
		if a != nil && a.Kind != ir.Dense {
			return nil, fmt.Errorf("input %s, want a tensor", a)
		}
	}
	l, err := k.layerOfType(dt, n, in)
	if err != nil {
		return nil, err
	}
	y := l.outputSpecs(dt)
	for i, spec := range []ir.Spec{y[0], y[0], y[1], y[1]} {
		a := op.Opt(in, inY+i)
		if a == nil && i > 0 {
			continue
		}
		if a == nil || a.String() != spec.String() {
			return nil, fmt.Errorf("input %d is %v, want %s", inY+i, a, spec)
		}
	}
	return l, nil
}

func (k *kind) gradientShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	l, err := k.gradientLayer(n, in)
	if err != nil {
		return nil, err
	}
	for d := range l.D {
		if err := l.checkSlopes(n, d); err != nil {
			return nil, err
		}
	}
	specs := make([]ir.Spec, len(differentiated))
	for i, at := range differentiated {
		specs[i] = ir.Spec{DType: in[inX].DType, Shape: []int64{0}}
		if a := op.Opt(in, at); a != nil && (at <= inH || l.cell) {
			specs[i].Shape = a.Shape
		}
	}
	return specs[:min(max(n.NumOut(), 0), len(specs))], nil
}

// checkSlopes is an error for activations whose derivative does not follow from their value.
func (l *layer) checkSlopes(n *op.Node, d int) error {
	fs, err := l.functions(n, d)
	if err != nil {
		return err
	}
	for _, f := range fs {
		if f.a < 0 && (f.name == "LeakyRelu" || f.name == "Elu") {
			return fmt.Errorf("the gradient of %s with alpha = %v is not supported", f.name, f.a)
		}
	}
	return nil
}

// A number is an element type of gradients.
type number interface{ float32 | float64 }

// A gradient is one direction of a layer during a run.
type gradient[T number] struct {
	side
	c               *op.Call
	f               []function
	ends            [][2]T // the values of each function at the bounds of clip
	clip            T
	coupled, linear bool // as in direction

	x, y, w, r     []T // W and R of this direction
	bias, peep     []T // nil for none
	h0, c0         []T
	dy, dyh, dyc   []T
	gates          []T // of all steps, [T·N, gates·H]: before activations, after them, and their gradients
	before         []T // the states h before each step, [T·N, H]
	cells          []T // LSTM: the states c after each step, [T·N, H]
	reset          []T // GRU: r∘h or, with linear_before_reset, h·Rhᵀ + Rbh and then its gradient, [T·N, H]
	dgates         []T // of one step: what is multiplied by R, [N, gates·H]
	dh, dc, dreset []T // [N, H]
	zero           []T // [H]
	product        []byte
}

// gradientScratch is the lengths of the buffers from gates to zero.
func (l *layer) gradientScratch() []int {
	rows, g := l.T*l.N, l.gates*l.H
	cells, reset := 0, 0
	if l.cell {
		cells = rows * l.H
	}
	if l.after() {
		reset = rows * l.H
	}
	return []int{rows * g, rows * l.H, cells, reset, l.N * g, l.N * l.H, l.N * l.H, l.N * l.H, l.H}
}

func (k *kind) gradientWork(n *op.Node, in []*ir.Array, workers int) int64 {
	l, err := k.gradientLayer(n, in)
	if err != nil {
		return 0
	}
	total, products := 0, int64(0)
	for _, n := range l.gradientScratch() {
		total += aligned(n)
	}
	if in[inX].DType == ir.Double {
		return 8 * int64(total)
	}
	rows, g := l.T*l.N, l.gates*l.H
	for _, s := range []gemm.Shape{
		{M: rows, N: g, K: l.Input}, {M: rows, N: g, K: l.H}, {M: rows, N: 2 * l.H, K: l.H},
		{M: rows, N: l.H, K: l.H}, {M: rows, N: l.Input, K: g},
		{M: g, N: l.Input, K: rows}, {M: g, N: l.H, K: rows}, {M: 2 * l.H, N: l.H, K: rows}, {M: l.H, N: l.H, K: rows},
	} {
		products = max(products, gemm.FloatWork(s, 1, workers, false))
	}
	for _, k := range []int{g, 2 * l.H, l.H} {
		products = max(products, gemm.FloatWork(gemm.Shape{M: l.N, N: l.H, K: k}, 1, workers, true))
	}
	return 4*int64(total) + products
}

func runGradient[T number](k *kind) func(*op.Call) error {
	return func(c *op.Call) error {
		l, err := k.gradientLayer(c.Node, c.In)
		if err != nil {
			return err
		}
		if err := l.readLengths(c.Opt(inLens)); err != nil {
			return err
		}
		for d := range l.D {
			g, err := newGradient[T](c, side{l, d})
			if err != nil {
				return err
			}
			g.run()
		}
		return nil
	}
}

func newGradient[T number](c *op.Call, s side) (*gradient[T], error) {
	g := &gradient[T]{side: s, c: c, clip: T(c.Float("clip", 0)), coupled: c.Bool("input_forget", false),
		linear: s.linearBeforeReset(c.Node)}
	var err error
	if g.f, err = s.functions(c.Node, s.d); err != nil {
		return nil, err
	}
	g.ends = make([][2]T, len(g.f))
	for i, f := range g.f {
		// The function of the bounds themselves: a gate whose value is at or outside of them was limited.
		bounds := []T{-g.clip, g.clip}
		activate(f, bounds)
		g.ends[i] = [2]T{min(bounds[0], bounds[1]), max(bounds[0], bounds[1])}
	}
	n := g.kind.gates * g.H
	g.x, g.y = ir.View[T](c.In[inX]), ir.View[T](c.In[inY])
	g.w, g.r = ofSide[T](c.In[inW], s.d, n*g.Input), ofSide[T](c.In[inR], s.d, n*g.H)
	g.bias = ofSide[T](c.Opt(inB), s.d, 2*n)
	g.h0, g.dy, g.dyh = view[T](c.Opt(inH)), view[T](c.Opt(inDY)), view[T](c.Opt(inDYH))
	if g.cell {
		g.peep = ofSide[T](c.Opt(inP), s.d, 3*g.H)
		g.c0, g.dyc = view[T](c.Opt(inC)), view[T](c.Opt(inDYC))
	}
	work := kernel.Words[T](c.Work)
	buffers := []*[]T{&g.gates, &g.before, &g.cells, &g.reset, &g.dgates, &g.dh, &g.dc, &g.dreset, &g.zero}
	for i, n := range g.gradientScratch() {
		*buffers[i], work = work[:n:n], work[aligned(n):]
	}
	g.product = c.Work[len(c.Work)-len(work)*int(c.In[inX].DType.Bits()/8):]
	clear(g.zero)
	return g, nil
}

// view is the elements of an optional tensor.
func view[T number](a *ir.Array) []T {
	if a == nil {
		return nil
	}
	return ir.View[T](a)
}

// ofSide is the n elements of direction d of an optional tensor.
func ofSide[T number](a *ir.Array, d, n int) []T {
	if a == nil {
		return nil
	}
	return ir.View[T](a)[d*n:][:n]
}

// A cell is the part of a gradient that differs between RNN, GRU and LSTM.
type cell interface {
	// recompute replaces the sums in gates by the values of the gates.
	recompute()
	// back replaces the gates of step i by their gradients, and dh and dc by those of the states before the step.
	back(i int)
}

func (g *gradient[T]) cellGradient() cell {
	switch g.kind {
	case lstm:
		return newLSTMGradient(g)
	case gru:
		return newGRUGradient(g)
	}
	return newRNNGradient(g)
}

func (g *gradient[T]) run() {
	// The forward pass stored Y: with the states, gates of all steps are recomputed at once. Backpropagation then is
	// step by step, and what needs all steps (dW, dR, dX) comes last, from the gradients that replaced the gates.
	g.gatherStates()
	g.sumGates()
	c := g.cellGradient()
	c.recompute()
	g.loadState(g.dh, g.dyh)
	g.loadState(g.dc, g.dyc)
	for i := g.T - 1; i >= 0; i-- {
		c.back(i)
	}
	g.storeState(outH, g.dh)
	g.storeState(outC, g.dc)
	g.products()
}

// each calls f for every sequence that has a step i, with the row of the step. The gates of other sequences have zero
// gradients.
func (g *gradient[T]) each(i int, f func(n, row int)) {
	width := g.kind.gates * g.H
	g.c.Pool.Rows(g.N, max(1, rowGrain/g.H), func(from, to int) {
		for n := from; n < to; n++ {
			if t := g.stepOf(i, n); t >= 0 {
				f(n, g.inputAt(t, n))
				continue
			}
			clear(g.dgates[n*width:][:width])
			// Rows after the end: the products over all steps read them.
			clear(g.gates[g.inputAt(i, n)*width:][:width])
			if g.after() {
				clear(g.stateRow(g.reset, g.inputAt(i, n)))
			}
		}
	})
}

// rowGrain is the minimum number of elements of a state for which sequences are shared between workers.
const rowGrain = 1 << 11

// eachSequence calls f for every sequence, with its number of steps.
func (g *gradient[T]) eachSequence(f func(n, steps int)) {
	g.c.Pool.Rows(g.N, max(1, rowGrain/max(g.T*g.H, 1)), func(from, to int) {
		for n := from; n < to; n++ {
			steps := g.T
			if g.lens != nil {
				steps = int(g.lens[n])
			}
			f(n, steps)
		}
	})
}
