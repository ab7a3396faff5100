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
	byName   map[string]*parameter
	weights  []*parameter // in graph order
	stats    []*batchNormStat
}

// A parameter is a trained weight with its optimizer state. All arrays are inputs of training steps.
type parameter struct {
	name    string
	tensor  *ir.Tensor // before training
	array   *ir.Array
	states  []*ir.Array // of the optimizer
	gradSum *ir.Array   // accumulated gradient; nil without accumulation
	pruned  bool        // zeros stay zero
	decays  bool        // weight decay applies
}

// trainable reports whether a weight is selected for training.
func (ps *parameters) trainable(name string) bool { return ps.selected == nil || ps.selected[name] }

// load reads weights and statistics of a training graph.
func (ps *parameters) load(ctx context.Context, e *ir.Eval, tape *grad.Tape) (err error) {
	if ps.stats, err = loadStats(ctx, e, tape); err != nil {
		return err
	}
	ps.byName = map[string]*parameter{}
	for _, p := range tape.Params {
		if p.Tensor.DType != ir.Float {
			return fmt.Errorf("tensor %q is %s; training supports float32", p.Name, p.Tensor.DType)
		}
		w, err := loadParameter(ctx, e, p.Name, p.Tensor)
		if err != nil {
			return err
		}
		ps.byName[p.Name] = w
		ps.weights = append(ps.weights, w)
	}
	return nil
}

// prunedSparsity is the fraction of zeros above which a weight counts as pruned. Dense trained weights have almost no zeros.
const prunedSparsity = 0.02

func loadParameter(ctx context.Context, e *ir.Eval, name string, t *ir.Tensor) (*parameter, error) {
	p := &parameter{name: name, tensor: t, array: ir.NewArray(t.DType, t.Shape...), decays: len(t.Shape) > 1}
	if err := readTensor(ctx, e, t, p.array); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	zeros := 0
	for _, w := range ir.View[float32](p.array) {
		if w == 0 {
			zeros++
		}
	}
	p.pruned = len(t.Shape) > 1 && float64(zeros) > prunedSparsity*float64(t.Elems())
	return p, nil
}

func readTensor(ctx context.Context, e *ir.Eval, t *ir.Tensor, to *ir.Array) error {
	r, err := e.Open(ctx, t)
	if err != nil {
		return err
	}
	return ir.ReadFull(r, to.Data, 0)
}

// allocate creates optimizer states, and buffers for accumulated gradients if the layout accumulates.
func (ps *parameters) allocate(o optimizer, accumulates bool) {
	for _, p := range ps.weights {
		p.states, p.gradSum = nil, nil
		for _, s := range o.states(p.array.Spec()) {
			p.states = append(p.states, ir.NewArray(s.DType, s.Shape...))
		}
		if accumulates {
			p.gradSum = zerosLike(p.array)
		}
	}
}

// zerosLike returns an array of zeros of a's type and shape.
func zerosLike(a *ir.Array) *ir.Array { return ir.NewArray(a.DType, a.Shape...) }

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

// store writes the trained weights and statistics into c's model.
func (ps *parameters) store(step *pass.Step) {
	trainable := grad.Trainable(step.Model, ps.trainable)
	for _, v := range pass.Weights(step.Model) { // in the order of the model
		if p := ps.byName[v.Name]; trainable[v] && p != nil && p.tensor == v.Const {
			replace(step, v, p.array)
		}
	}
	for _, v := range step.Model.Graph.Consts() {
		if s := ps.stat(v.Const); s != nil {
			replace(step, v, s.array)
		}
	}
}

func replace(s *pass.Step, v *ir.Value, trained *ir.Array) {
	before, consumers := v.Const, pass.Consumers(v)
	after := &ir.Tensor{Spec: before.Spec, Source: ir.Mem(trained.Data)}
	v.SetConst(after)
	s.Ledger.Changed(v, before, consumers, pass.Row{
		Form: pass.InPlace, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: after}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return parts[0] },
	})
}
