package layerwise

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/engine"
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
	samples []map[*ir.Value]*ir.Array
	stand   map[*ir.Value]*ir.Tensor
}

// New starts in front of the first node of m, for samples of its inputs by their names, which it holds on to.
func New(m *ir.Model, samples []map[string]*ir.Array, o engine.Options) (*Walk, error) {
	order, err := m.Graph.Order()
	if err != nil {
		return nil, err
	}
	w := &Walk{model: m, options: o, order: order, made: map[*ir.Value]int{}, read: map[*ir.Value]int{}, place: map[*ir.Node]int{}, stand: map[*ir.Value]*ir.Tensor{}}
	w.uses()
	for _, s := range samples {
		live := map[*ir.Value]*ir.Array{}
		for _, v := range m.Graph.Inputs {
			if v.Const != nil {
				continue
			}
			if live[v] = s[v.Name]; live[v] == nil {
				return nil, fmt.Errorf("input %q is missing", v.Name)
			}
		}
		w.samples = append(w.samples, live)
	}
	return w, nil
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

// To runs the nodes up to the one that makes v, for all samples, and returns what v is in each. It must not be made
// before what an earlier call asked for. The arrays are valid until the next call, and are not to be changed.
func (w *Walk) To(ctx context.Context, v *ir.Value) ([]*ir.Array, error) {
	if err := w.run(ctx, w.made[v]+1, v); err != nil {
		return nil, err
	}
	arrays := make([]*ir.Array, len(w.samples))
	for i, s := range w.samples {
		if arrays[i] = s[v]; arrays[i] == nil {
			return nil, fmt.Errorf("value %q: it was passed already", v.Name)
		}
	}
	return arrays, nil
}

// Finish runs all nodes that are left, and returns the model's outputs for each sample.
func (w *Walk) Finish(ctx context.Context) ([]map[string]*ir.Array, error) {
	if err := w.run(ctx, len(w.order), nil); err != nil {
		return nil, err
	}
	out := make([]map[string]*ir.Array, len(w.samples))
	for i, s := range w.samples {
		out[i] = map[string]*ir.Array{}
		for _, v := range w.model.Graph.Outputs {
			if s[v] != nil {
				out[i][v.Name] = s[v]
			}
		}
	}
	return out, nil
}

// run runs the nodes up to before end, keeping what later ones read, and v.
func (w *Walk) run(ctx context.Context, end int, v *ir.Value) error {
	w.forget(v)
	if end <= w.next {
		return nil
	}
	p := w.part(end, v)
	w.next = end
	return p.run(ctx, w.samples, w.options)
}

// forget gives up what no node will read.
func (w *Walk) forget(keep *ir.Value) {
	for v := range w.stand {
		if w.read[v] < w.next {
			delete(w.stand, v)
		}
	}
	for _, s := range w.samples {
		for v := range s {
			if w.read[v] < w.next && v != keep {
				delete(s, v)
			}
		}
	}
}
