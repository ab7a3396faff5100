package layerwise

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A Walk goes through the nodes of a model's main graph once. The model stays as it is.
type Walk struct {
	model   *ir.Model
	options engine.Options
	order   []*ir.Node
	made    map[*ir.Value]int // the node that makes a value
	read    map[*ir.Value]int // the last node that reads it; len(order) for outputs of the model
	place   map[*ir.Node]int  // in order
	next    int               // the first node that has not run
	samples []map[*ir.Value]held
	store   *store
	stand   map[*ir.Value]*ir.Tensor
}

// New starts in front of the first node of m. Values that do not fit into memory are put into temporary files of eval.
func New(m *ir.Model, eval *ir.Eval, o engine.Options) (*Walk, error) {
	order, err := m.Graph.Order()
	if err != nil {
		return nil, err
	}
	w := &Walk{
		model: m, options: o, order: order, store: newStore(eval, o.MemoryLimit),
		made: map[*ir.Value]int{}, read: map[*ir.Value]int{}, place: map[*ir.Node]int{}, stand: map[*ir.Value]*ir.Tensor{},
	}
	w.uses()
	return w, nil
}

// Add adds a sample: inputs by their names, which it holds on to. All are added before the first node runs.
func (w *Walk) Add(inputs map[string]*ir.Array) error {
	live := map[*ir.Value]held{}
	for _, v := range w.model.Graph.Inputs {
		if v.Const != nil {
			continue
		}
		a := inputs[v.Name]
		if a == nil {
			return fmt.Errorf("input %q is missing", v.Name)
		}
		var err error
		if live[v], err = w.store.put(a); err != nil {
			return err
		}
	}
	w.samples = append(w.samples, live)
	return nil
}

// uses finds when values are made and last read.
func (w *Walk) uses() {
	for i, n := range w.order {
		w.place[n] = i
	}
	for _, v := range w.model.Graph.Inputs {
		w.made[v] = -1
		w.read[v] = w.last(v)
	}
	for i, n := range w.order {
		for _, v := range n.Outputs {
			if v != nil {
				w.made[v] = i
				w.read[v] = w.last(v)
			}
		}
	}
}

// last is the last node of the main graph that v is read in; 0 if there is none.
func (w *Walk) last(v *ir.Value) int {
	at := 0
	for _, u := range v.Uses() {
		at = max(at, w.reader(u))
	}
	return at
}

// reader is the place of the node of the main graph that u is in.
func (w *Walk) reader(u ir.Use) int {
	g := u.Graph
	if u.Node != nil {
		g = u.Node.Graph()
	}
	n := u.Node
	for ; g != w.model.Graph; g = n.Graph() {
		n = g.Owner
	}
	if n == nil {
		return len(w.order)
	}
	return w.place[n]
}

// Has reports whether the main graph makes v, or is given it.
func (w *Walk) Has(v *ir.Value) bool {
	_, ok := w.made[v]
	return ok && v.Const == nil
}

// Compare orders values by when they are made.
func (w *Walk) Compare(a, b *ir.Value) int { return w.made[a] - w.made[b] }

// Replace makes t the constant v of the main graph for the nodes that have not run yet, and holds on to it until they have.
func (w *Walk) Replace(v *ir.Value, t *ir.Tensor) { w.stand[v], w.read[v] = t, w.last(v) }

// To runs the nodes up to the one that makes v, for all samples, and shows what v is in each, in order. It must not be made
// before what an earlier call asked for. An array is valid until visit returns, and is not to be changed.
func (w *Walk) To(ctx context.Context, v *ir.Value, visit func(*ir.Array) error) error {
	if err := w.run(ctx, w.made[v]+1, v); err != nil {
		return err
	}
	for _, s := range w.samples {
		h, ok := s[v]
		if !ok {
			return fmt.Errorf("value %q: it was passed already", v.Name)
		}
		a, err := w.store.get(h)
		if err != nil {
			return err
		}
		if err := visit(a); err != nil {
			return err
		}
	}
	return nil
}

// Finish runs all nodes that are left, and shows the model's outputs for each sample.
func (w *Walk) Finish(ctx context.Context, visit func(outputs map[string]*ir.Array) error) error {
	if err := w.run(ctx, len(w.order), nil); err != nil {
		return err
	}
	for _, s := range w.samples {
		outputs := map[string]*ir.Array{}
		for _, v := range w.model.Graph.Outputs {
			h, ok := s[v]
			if !ok {
				continue
			}
			a, err := w.store.get(h)
			if err != nil {
				return err
			}
			outputs[v.Name] = a
		}
		if err := visit(outputs); err != nil {
			return err
		}
	}
	return nil
}

// run runs the nodes up to before end, keeping what later ones read, and v.
func (w *Walk) run(ctx context.Context, end int, v *ir.Value) error {
	w.forget(v)
	if end <= w.next {
		return nil
	}
	p := w.part(end, v)
	w.next = end
	return p.run(ctx, w.samples, w.store, w.options)
}

// forget gives up what no node will read.
func (w *Walk) forget(keep *ir.Value) {
	for v := range w.stand {
		if w.read[v] < w.next {
			delete(w.stand, v)
		}
	}
	for _, s := range w.samples {
		for v, h := range s {
			if w.read[v] < w.next && v != keep {
				w.store.drop(h)
				delete(s, v)
			}
		}
	}
}
