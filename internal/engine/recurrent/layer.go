package recurrent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A kind is the differences between RNN, GRU and LSTM.
type kind struct {
	name        string
	gates       int      // rows of W and R are gates·hidden
	activations []string // the defaults, for each direction
	cell        bool     // it has a state c besides h
	quantized   bool     // W and R have 8 bits, and gates as columns
	step        func(s *direction, n int, gates, h, c []float32)
	// hidden is the number of gates whose part of R multiplies h before the step; those after it multiply a value that
	// the step computes from h.
	hidden func(n *op.Node) int
}

// Inputs of the operators; P and initial_c are LSTM's.
const (
	inX = iota
	inW
	inR
	inB
	inLens
	inH
	inC
	inP
)

// A layer is the sizes of one node: T steps of N sequences of Input numbers, D directions.
type layer struct {
	*kind
	T, N, Input, H, D int
	batchFirst        bool // layout 1
	reverse           []bool
	lens              []int64 // of the sequences; nil if all have length T
}

// layerOf reads attributes and shapes (ONNX RNN, GRU, LSTM).
func (k *kind) layerOf(n *op.Node, in []*ir.Array) (*layer, error) {
	return k.layerOfType(ir.Float, n, in)
}

// layerOfType is layerOf for operands of that type.
func (k *kind) layerOfType(dt ir.DType, n *op.Node, in []*ir.Array) (*layer, error) {
	var got [3]*ir.Array
	for i, name := range []string{"X", "W", "R"} {
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		switch {
		case k.quantized && i > 0 && (len(a.Shape) != 3 || a.DType != ir.Int8 && a.DType != ir.Uint8):
			return nil, fmt.Errorf("input %s is %s, want int8 or uint8 of rank 3", name, a)
		case (!k.quantized || i == 0) && (len(a.Shape) != 3 || a.DType != dt):
			return nil, fmt.Errorf("input %s is %s, want %s of rank 3", name, a, dt)
		}
		got[i] = a
	}
	x, w, r := got[0].Shape, got[1].Shape, got[2].Shape
	// DynamicQuantizeLSTM has W and R transposed.
	if k.quantized {
		w, r = []int64{w[0], w[2], w[1]}, []int64{r[0], r[2], r[1]}
	}
	l := &layer{kind: k, T: int(x[0]), N: int(x[1]), Input: int(x[2]), D: 1, batchFirst: n.Int("layout", 0) == 1}
	if l.batchFirst {
		l.T, l.N = l.N, l.T
	}
	switch d := n.Text("direction", "forward"); d {
	case "forward":
		l.reverse = []bool{false}
	case "reverse":
		l.reverse = []bool{true}
	case "bidirectional":
		l.D, l.reverse = 2, []bool{false, true}
	default:
		return nil, fmt.Errorf("unknown direction %q", d)
	}
	l.H = int(n.Int("hidden_size", r[2]))
	g := int64(k.gates * l.H)
	if l.H < 1 || !slices.Equal(w, []int64{int64(l.D), g, int64(l.Input)}) ||
		!slices.Equal(r, []int64{int64(l.D), g, int64(l.H)}) {
		return nil, fmt.Errorf("inputs W %s and R %s do not match %d directions, hidden size %d and input size %d",
			got[1], got[2], l.D, l.H, l.Input)
	}
	if k.quantized {
		if err := l.checkQuantized(in); err != nil {
			return nil, err
		}
	}
	return l, l.options(dt, n, in)
}

// options checks the optional inputs.
func (l *layer) options(dt ir.DType, n *op.Node, in []*ir.Array) error {
	state := []int64{int64(l.D), int64(l.N), int64(l.H)}
	if l.batchFirst {
		state[0], state[1] = state[1], state[0]
	}
	for _, o := range []struct {
		at    int
		name  string
		dt    ir.DType
		shape []int64
	}{
		{inB, "B", dt, []int64{int64(l.D), int64(2 * l.gates * l.H)}},
		{inLens, "sequence_lens", ir.Int32, []int64{int64(l.N)}},
		{inH, "initial_h", dt, state},
		{inC, "initial_c", dt, state},
		{inP, "P", dt, []int64{int64(l.D), int64(3 * l.H)}},
	} {
		a := op.Opt(in, o.at)
		if a == nil || o.at > inH && !l.cell {
			continue
		}
		if want := (ir.Spec{DType: o.dt, Shape: o.shape}); a.String() != want.String() {
			return fmt.Errorf("input %s is %s, want %s", o.name, a, want)
		}
	}
	_, err := l.functions(n, 0)
	return err
}

func (k *kind) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	l, err := k.layerOf(n, in)
	if err != nil {
		return nil, err
	}
	specs := l.outputSpecs(ir.Float)
	return specs[:max(min(n.NumOut(), len(specs)), 0)], nil
}

// outputSpecs are the types of Y, Y_h and Y_c.
func (l *layer) outputSpecs(dt ir.DType) []ir.Spec {
	y := []int64{int64(l.T), int64(l.D), int64(l.N), int64(l.H)}
	state := []int64{int64(l.D), int64(l.N), int64(l.H)}
	if l.batchFirst {
		y = []int64{int64(l.N), int64(l.T), int64(l.D), int64(l.H)}
		state = []int64{int64(l.N), int64(l.D), int64(l.H)}
	}
	return []ir.Spec{{DType: dt, Shape: y}, {DType: dt, Shape: state}, {DType: dt, Shape: state}}
}

// after reports whether a part of R multiplies a value that the step computes.
func (l *layer) after() bool { return l.kind == gru }

// linearBeforeReset reports whether the reset gate applies after the product with R.
func (l *layer) linearBeforeReset(n *op.Node) bool {
	return l.after() && n.Bool("linear_before_reset", false)
}

// weights are W and R of each direction, prepacked. R is split at kind.hidden.
type weights struct {
	w, before, after []factor
}

func (k *kind) prepare(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	w, r := op.Opt(in, inW), op.Opt(in, inR)
	if k.quantized {
		if !k.packable(in) {
			return nil, nil
		}
		return packQuantized(in, pool).prepared(), nil
	}
	if w == nil || r == nil || w.DType != ir.Float || r.DType != ir.Float || len(w.Shape) != 3 || len(r.Shape) != 3 ||
		int(r.Shape[1]) != k.gates*int(r.Shape[2]) {
		return nil, nil
	}
	return k.pack(n, w, r, pool).prepared(), nil
}

// prepared replaces W and R by their packed form.
func (w *weights) prepared() *op.Prepared {
	p := &op.Prepared{State: w, Drops: []int{inW, inR}}
	for _, m := range slices.Concat(w.w, w.before, w.after) {
		p.Bytes += m.Bytes()
	}
	return p
}

func (k *kind) pack(n *op.Node, w, r *ir.Array, pool *op.Pool) *weights {
	out := &weights{}
	g, input, h := int(w.Shape[1]), int(w.Shape[2]), int(r.Shape[2])
	cut := k.hidden(n) * h
	for d := range int(w.Shape[0]) {
		wd, rd := ir.View[float32](w)[d*g*input:][:g*input], ir.View[float32](r)[d*g*h:][:g*h]
		out.w = append(out.w, floatFactor{gemm.PackFloat(pool, gemm.Rows(wd, input).T(), input, g), input, g})
		out.before = append(out.before, floatFactor{gemm.PackFloat(pool, gemm.Rows(rd[:cut*h], h).T(), h, cut), h, cut})
		if cut < g {
			out.after = append(out.after, floatFactor{gemm.PackFloat(pool, gemm.Rows(rd[cut*h:], h).T(), h, g-cut), h,
				g - cut})
		}
	}
	return out
}

// scratch is the number of floats of one direction, and the bytes of its products.
func (l *layer) scratch(workers int) (inputs, gates, state int, products int64) {
	g := l.gates * l.H
	for _, s := range []gemm.Shape{{M: l.T * l.N, N: g, K: l.Input}, {M: l.N, N: g, K: l.H}} {
		if l.quantized {
			products = max(products, quantizedWork(s, workers))
			continue
		}
		products = max(products, gemm.FloatWork(s, 1, workers, true))
	}
	return l.T * l.N * g, l.N * g, l.N * l.H, products
}

func (k *kind) work(n *op.Node, in []*ir.Array, workers int) int64 {
	l, err := k.layerOf(n, in)
	if err != nil {
		return 0
	}
	return int64(min(workers, l.D)) * l.slot(workers)
}

// slot is the scratch memory in bytes of one direction: as many as there are workers are computed at the same time.
func (l *layer) slot(workers int) int64 {
	inputs, gates, state, products := l.scratch(workers)
	return 4*int64(aligned(inputs)+aligned(gates)+4*aligned(state)) + int64(bytesOf(int(products)))
}

// aligned rounds up to whole cache lines of floats.
func aligned(n int) int { return (n + 15) / 16 * 16 }

func (k *kind) run(c *op.Call) error {
	l, err := k.layerOf(c.Node, c.In)
	if err != nil {
		return err
	}
	if err := l.readLengths(c.Opt(inLens)); err != nil {
		return err
	}
	packed, _ := c.State.(*weights)
	switch {
	case packed != nil:
	case k.quantized:
		packed = packQuantized(c.In, c.Pool)
	default:
		packed = k.pack(c.Node, c.In[inW], c.In[inR], c.Pool)
	}
	size, failed := l.slot(c.Pool.Workers()), make([]error, l.D)
	// Directions are independent and have scratch memory of their own.
	c.Pool.Slots(l.D, func(d, slot int) {
		s, err := l.direction(c, c.Work[int64(slot)*size:][:size], packed, d)
		if failed[d] = err; err == nil {
			s.run()
		}
	})
	return errors.Join(failed...)
}

// readLengths reads the optional lengths of the sequences.
func (l *layer) readLengths(a *ir.Array) (err error) {
	if a == nil {
		return nil
	}
	if l.lens, err = op.Ints(a); err != nil {
		return err
	}
	for i, n := range l.lens {
		if n < 0 || n > int64(l.T) {
			return fmt.Errorf("sequence_lens[%d] is %d, the sequences have %d steps", i, n, l.T)
		}
	}
	return nil
}
