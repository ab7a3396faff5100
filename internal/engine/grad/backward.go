package grad

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Backward adds the nodes that compute the gradients of the parameters from those of some values of
// the forward graph, and of inputs that were asked for by Want. It is called once.
func (t *Tape) Backward(seeds map[*ir.Value]*ir.Value) error {
	for _, v := range t.forwardValues() {
		if seeds[v] != nil {
			t.give(v, seeds[v])
		}
	}
	for _, n := range slices.Backward(t.forward) {
		if err := t.node(n); err != nil {
			return fmt.Errorf("node %q (%s): %w", n.Label(), n.Op, err)
		}
	}
	for _, p := range t.Params {
		p.Grad = t.grads[p.Value]
	}
	return nil
}

// Close ends the forward graph: nodes that are added from now on, such as those of losses, belong to
// the way back. Backward closes it too.
func (t *Tape) Close() {
	if t.forward == nil {
		t.forward = slices.Collect(t.Graph().Nodes())
	}
}

// forwardValues are the inputs and results of the forward graph, in order.
func (t *Tape) forwardValues() []*ir.Value {
	t.Close()
	vs := slices.Clone(t.Graph().Inputs)
	for _, n := range t.forward {
		vs = append(vs, n.Outputs...)
	}
	return vs
}

// Want asks for the gradient of an input of the model, which Grad gives after Backward.
func (t *Tape) Want(v *ir.Value) {
	t.needs[v] = true
	t.reach()
}

// Grad is the gradient of a value after Backward, nil if nothing depends on it.
func (t *Tape) Grad(v *ir.Value) *ir.Value { return t.grads[v] }

// node adds what computes the gradients of n's inputs.
func (t *Tape) node(n *ir.Node) error {
	dy := make([]*ir.Value, len(n.Outputs))
	some := false
	for i, v := range n.Outputs {
		if v != nil && t.Needs(v) {
			dy[i] = t.grads[v]
			some = some || dy[i] != nil
		}
	}
	if !some || !slices.ContainsFunc(n.Inputs(), t.Needs) {
		return nil
	}
	r := lookup(n.Op)
	if r == nil {
		return fmt.Errorf("no gradient is known for this operator; freeze what lies before it")
	}
	dx, err := r.Backward(t, n, dy)
	if err != nil {
		return err
	}
	for i, v := range n.Inputs() {
		if i < len(dx) && dx[i] != nil && t.Needs(v) {
			t.give(v, dx[i])
		}
	}
	return nil
}

// give adds to the gradient of v.
func (t *Tape) give(v, dv *ir.Value) {
	if sum := t.grads[v]; sum != nil {
		dv = t.Op("Add", []*ir.Value{sum, dv})
	}
	t.grads[v] = dv
}
