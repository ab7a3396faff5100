package layerwise

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A Walk runs the nodes of a model's main graph once, in order. It does not change the model.
type Walk struct {
	model   *ir.Model
	options engine.Options
	order   []*ir.Node // without those in constant
	// Nodes whose inputs are constants: each part that reads what they make runs them, so that they see replaced weights.
	constant      map[*ir.Node]bool
	producerIndex map[*ir.Value]int // index of the producer
	lastUse       map[*ir.Value]int // index of the last consumer; len(order) for outputs of the model
	index         map[*ir.Node]int  // in order; of those in constant the index of the last node that reads them
	next          int               // index of the first node that has not run
	samples       []map[*ir.Value]storedActivation
	store         *store
	replacements  map[*ir.Value]*ir.Tensor
	stops         []*ir.Value // at which To stops on its way
}

// New starts before the first node of m. Activations beyond the memory budget are in temporary files of eval.
func New(m *ir.Model, eval *ir.Eval, o engine.Options) (*Walk, error) {
	order, err := m.Graph.Order()
	if err != nil {
		return nil, err
	}
	w := &Walk{
		model: m, options: o, constant: map[*ir.Node]bool{}, store: newStore(eval, o.Limits.Weights),
		producerIndex: map[*ir.Value]int{}, lastUse: map[*ir.Value]int{}, index: map[*ir.Node]int{},
		replacements: map[*ir.Value]*ir.Tensor{},
	}
	for _, n := range order {
		if w.folds(n) {
			w.constant[n] = true
		} else {
			w.order = append(w.order, n)
		}
	}
	w.uses(order)
	return w, nil
}

// folds reports whether n is a node in constant: a view of a weight, for example.
func (w *Walk) folds(n *ir.Node) bool {
	return len(n.Inputs()) > 0 && !operator.Of(n).Random && !slices.ContainsFunc(n.Attrs, func(a *ir.Attr) bool {
		return a.Graph != nil || a.Graphs != nil
	}) &&
		!slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool {
			return v != nil && v.Initializer() == nil && v.Const == nil && !w.computed(v)
		})
}

// computed reports whether a node in constant makes v.
func (w *Walk) computed(v *ir.Value) bool { return v.Producer() != nil && w.constant[v.Producer()] }

// Add adds a sample: inputs by name, which it keeps. All samples are added before the first node runs.
func (w *Walk) Add(inputs map[string]*ir.Array) error {
	live := map[*ir.Value]storedActivation{}
	for _, v := range w.model.Graph.Inputs {
		if v.Initializer() != nil {
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

// uses finds the producer and the last consumer of each value; order has all nodes.
func (w *Walk) uses(order []*ir.Node) {
	for i, n := range w.order {
		w.index[n] = i
	}
	// Consumers come first: a walk from each value to its consumers would take as many steps as there are paths, twice
	// as many with each Add(v, v).
	for _, n := range slices.Backward(order) {
		if w.constant[n] {
			w.index[n] = w.lastOf(n)
		}
	}
	for _, v := range w.model.Graph.Inputs {
		w.producerIndex[v] = -1
		w.lastUse[v] = w.last(v)
	}
	producerIndex := func(n *ir.Node, at int) {
		for _, v := range n.Outputs {
			if v != nil {
				w.producerIndex[v], w.lastUse[v] = at, w.last(v)
			}
		}
	}
	for n := range w.constant {
		producerIndex(n, -1)
	}
	for i, n := range w.order {
		producerIndex(n, i)
	}
}

// last is the index of the last node of the main graph that reads v, 0 if none does.
func (w *Walk) last(v *ir.Value) int {
	at := 0
	for _, u := range v.Uses() {
		at = max(at, w.consumer(u))
	}
	return at
}

// consumer is the index of the node of the main graph that contains u, or of the last one that reads it through nodes
// in constant.
func (w *Walk) consumer(u ir.Use) int {
	g := u.Graph
	if u.Node != nil {
		g = u.Node.Graph()
	}
	n := u.Node
	// A consumer in a subgraph runs with the node of the main graph that has it.
	for ; g != w.model.Graph; g = n.Graph() {
		n = g.Owner
	}
	if n == nil {
		return len(w.order)
	}
	return w.index[n]
}

// lastOf is the index of the last node of the main graph that reads an output of n, 0 if none does.
func (w *Walk) lastOf(n *ir.Node) int {
	at := 0
	for _, v := range n.Outputs {
		if v != nil {
			at = max(at, w.last(v))
		}
	}
	return at
}

// Has reports whether v is computed by the main graph or is one of its inputs.
func (w *Walk) Has(v *ir.Value) bool {
	_, ok := w.producerIndex[v]
	return ok && v.Initializer() == nil
}

// Compare orders values by the order of their producers.
func (w *Walk) Compare(a, b *ir.Value) int { return w.producerIndex[a] - w.producerIndex[b] }

// Replace makes t the constant v of the main graph for the nodes that have not run yet, and keeps it until they have.
func (w *Walk) Replace(v *ir.Value, t *ir.Tensor) { w.replacements[v], w.lastUse[v] = t, w.last(v) }

// To runs the nodes up to the producer of v on all samples and calls visit with v of each sample, in order. Calls must
// follow the order of producers. An array is valid until visit returns and must not be changed.
func (w *Walk) To(ctx context.Context, v *ir.Value, visit func(*ir.Array) error) error {
	// In the same parts in every process, whichever groups it computes.
	if err := w.passStops(ctx); err != nil {
		return err
	}
	if err := w.run(ctx, w.producerIndex[v]+1, v); err != nil {
		return err
	}
	for _, s := range w.samples {
		h, ok := s[v]
		if !ok {
			return fmt.Errorf("value %q: computed and freed already", v.Name)
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

// Finish runs all remaining nodes and calls visit with the model's outputs of each sample.
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

// run runs the nodes [next, end) and keeps the values that later nodes read, and v.
func (w *Walk) run(ctx context.Context, end int, v *ir.Value) error {
	w.release(v)
	var computed []*ir.Value // by nodes in constant
	if v != nil && w.computed(v) {
		computed = append(computed, v)
	}
	if end == len(w.order) {
		for _, o := range w.model.Graph.Outputs {
			if w.computed(o) && !slices.Contains(computed, o) {
				computed = append(computed, o)
			}
		}
	}
	if end <= w.next && len(computed) == 0 {
		return nil
	}
	// Where only constant expressions are missing, the part has no nodes of the order.
	end = max(end, w.next)
	p := w.part(end, v, computed)
	w.next = end
	err := p.run(ctx, w.samples, w.store, w.options)
	w.release(v) // what only these nodes read: what follows needs memory, too
	return err
}

// release frees values and replaced weights that no later node reads, except keep.
func (w *Walk) release(keep *ir.Value) {
	for v := range w.replacements {
		if w.lastUse[v] < w.next {
			delete(w.replacements, v)
		}
	}
	for _, s := range w.samples {
		for v, h := range s {
			if w.lastUse[v] < w.next && v != keep {
				w.store.drop(h)
				delete(s, v)
			}
		}
	}
}
