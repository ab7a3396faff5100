package distill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// parameters are the trained weights and the running statistics of a model.
type parameters struct {
	selected map[string]bool // names of trainable weights; nil for all
	pruned   map[string]bool // names of weights with pruned elements
	keep     bool            // zeros of all weights stay 0
	byName   map[string]*parameter
	weights  []*parameter // in graph order
	stats    []*batchNormStat
}

// A parameter is a trained weight with its optimizer state. All arrays are inputs of training steps. Their types are
// known at once; read and allocate create their data, which plans do not need.
type parameter struct {
	name    string
	tensor  *ir.Tensor // before training
	array   *ir.Array
	states  []*ir.Array // of the optimizer
	gradSum *ir.Array   // accumulated gradient; without data unless the layout accumulates
	scores  *ir.Array   // of movement pruning, with the mask; nil for other methods
	mask    *ir.Array
	pruned  bool // elements that are 0 stay 0
	zeros   int  // elements that are 0 before training
	units   units
	decays  bool          // weight decay applies
	finite  bool          // before training
	shared  *sharedWeight // nil unless array is the entries of codebooks
}

// setArray makes a the trained array, without optimizer state.
func (p *parameter) setArray(a *ir.Array, o optimizer) {
	p.array, p.gradSum, p.states = a, withoutData(a.Spec()), nil
	for _, s := range o.states(a.Spec()) {
		p.states = append(p.states, withoutData(s))
	}
}

// payload returns the payload after training.
func (p *parameter) payload() ir.Source {
	if p.shared != nil {
		return p.shared.tensor(p.array).Source
	}
	return ir.Mem(p.array.Data)
}

// trainable reports whether a weight is selected for training.
func (ps *parameters) trainable(name string) bool { return ps.selected == nil || ps.selected[name] }

// describe sets the weights and statistics of a training graph, without the data of their arrays.
func (ps *parameters) describe(tape *grad.Tape, o optimizer) error {
	ps.stats = describeStats(tape)
	ps.byName = map[string]*parameter{}
	for _, p := range tape.Params {
		if p.Tensor.DType != ir.Float {
			return fmt.Errorf("tensor %q is %s; training supports float32", p.Name, p.Tensor.DType)
		}
		// Units are found before the backward pass, whose products read weights in other orientations. Weights of one axis
		// are biases and the vectors of normalizations, which do not decay.
		w := &parameter{name: p.Name, tensor: p.Tensor, units: unitsOf(p), decays: len(p.Tensor.Shape) > 1}
		w.setArray(withoutData(p.Tensor.Spec), o)
		ps.byName[p.Name] = w
		ps.weights = append(ps.weights, w)
	}
	return nil
}

// withoutData returns an array of this type that has no data yet.
func withoutData(s ir.Spec) *ir.Array { return &ir.Array{DType: s.DType, Shape: s.Shape} }

// read reads all weights and statistics.
func (ps *parameters) read(ctx context.Context, e *ir.Eval) error {
	for _, s := range ps.stats {
		if err := readTensor(ctx, e, s.tensor, s.array); err != nil {
			return fmt.Errorf("tensor %q: %w", s.name, err)
		}
	}
	for _, p := range ps.weights {
		if err := p.read(ctx, e); err != nil {
			return fmt.Errorf("tensor %q: %w", p.name, err)
		}
		// Zeros of a vector are values: many biases start at 0.
		p.pruned = len(p.tensor.Shape) > 1 && (ps.keep || ps.pruned[p.name])
	}
	return nil
}

// sparse is the fraction of zeros above which a weight that is not known to be pruned is mentioned. Dense trained
// weights have almost no zeros.
const sparse = 0.02

// unknownZeros are the matrices with many zeros that are trained, as nothing reports that they were pruned.
func (ps *parameters) unknownZeros() (names []string) {
	for _, p := range ps.weights {
		if len(p.tensor.Shape) > 1 && !p.pruned && p.mask == nil && float64(p.zeros) > sparse*float64(p.tensor.Elems()) {
			names = append(names, p.name)
		}
	}
	return names
}

func (p *parameter) read(ctx context.Context, e *ir.Eval) error {
	if err := readTensor(ctx, e, p.tensor, p.array); err != nil {
		return err
	}
	p.zeros, p.finite = 0, true
	for _, w := range ir.View[float32](p.array) {
		if w == 0 {
			p.zeros++
		}
		p.finite = p.finite && finite(float64(w))
	}
	return nil
}

// readTensor reads a tensor into an array, whose data it creates if there are none.
func readTensor(ctx context.Context, e *ir.Eval, t *ir.Tensor, to *ir.Array) error {
	r, err := e.Open(ctx, t)
	if err != nil {
		return err
	}
	if to.Data == nil {
		zero(to)
	}
	return ir.ReadFull(r, to.Data, 0)
}

// allocate creates the optimizer states and accumulated gradients that a layout has in memory.
func (ps *parameters) allocate(p *layout) {
	for _, w := range ps.weights {
		if !p.offloadOptimizer {
			zero(w.states...)
		}
		if p.accumulates() {
			zero(w.gradSum)
		}
	}
}

// initialize creates random weights, for what depends on the types of weights only.
func (ps *parameters) initialize(tape *grad.Tape) {
	for _, p := range ps.weights {
		zero(p.array)
	}
	for _, s := range ps.stats {
		zero(s.array)
	}
	ps.reinit(tape, 0)
}

// release drops the data of weights and statistics.
func (ps *parameters) release() {
	for _, p := range ps.weights {
		p.array.Data = nil
	}
	for _, s := range ps.stats {
		s.array.Data = nil
	}
}

// zero creates the data of arrays, filled with zeros.
func zero(arrays ...*ir.Array) {
	for _, a := range arrays {
		a.Data = ir.AlignedBytes(a.Bytes())
	}
}

// each calls f for the arrays of all weights and statistics.
func (ps *parameters) each(f func(a *ir.Array) error) error {
	for _, p := range ps.weights {
		if err := f(p.array); err != nil {
			return err
		}
	}
	for _, s := range ps.stats {
		if err := f(s.array); err != nil {
			return err
		}
	}
	return nil
}

// bytes is the size of all weights and statistics.
func (ps *parameters) bytes() (n int64) {
	_ = ps.each(func(a *ir.Array) error {
		n += a.Bytes()
		return nil
	})
	return n
}

// writeTo writes a snapshot of weights and statistics to a file.
func (ps *parameters) writeTo(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ps.each(func(a *ir.Array) error {
		_, err := f.Write(a.Data)
		return err
	})
}

// readFrom restores a snapshot.
func (ps *parameters) readFrom(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return ps.each(func(a *ir.Array) error {
		_, err := io.ReadFull(f, a.Data)
		return err
	})
}

// stat returns the running statistic whose tensor before training was t, nil if there is none.
func (ps *parameters) stat(t *ir.Tensor) *batchNormStat {
	for _, s := range ps.stats {
		if s.tensor == t {
			return s
		}
	}
	return nil
}

// store writes the weights and statistics into the model of a step. If training did not improve the model, they are
// those from before.
func (ps *parameters) store(step *pass.Step, improved bool) {
	put := replace
	if !improved {
		put = skip
	}
	trainable := grad.Trainable(step.Model, ps.trainable)
	for _, v := range pass.Weights(step.Model) { // in the order of the model
		// The tensor, too: a weight of the same name in a subgraph is another one.
		if p := ps.byName[v.Name]; trainable[v] && p != nil && p.tensor == v.Const {
			put(step, v, p.payload())
		}
	}
	for _, v := range step.Model.Graph.Consts() {
		if s := ps.stat(v.Const); s != nil {
			put(step, v, ir.Mem(s.array.Data))
		}
	}
}

func skip(s *pass.Step, v *ir.Value, _ ir.Source, _ ...pass.Reason) {
	s.Ledger.Skip(v, pass.Consumers(v), pass.Reason{Code: pass.NotImproved})
}

func replace(s *pass.Step, v *ir.Value, trained ir.Source, notes ...pass.Reason) {
	before, consumers := v.Const, pass.Consumers(v)
	after := &ir.Tensor{Spec: before.Spec, Source: trained}
	v.SetConst(after)
	s.Ledger.Changed(v, before, consumers, pass.Row{
		Form: pass.InPlace, Notes: notes, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: after}},
		Restore: pass.Itself,
	})
}
