package grad

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Backward adds the backward pass: the nodes that compute the gradients of the parameters, and of inputs requested by
// Want, from the gradients of some values of the forward graph. It is called once.
func (t *Tape) Backward(seeds map[*ir.Value]*ir.Value) error {
	values := t.forwardValues()
	t.seeded = t.Graph().Last()
	for _, v := range values {
		if seeds[v] != nil {
			t.gradients.add(v, seeds[v])
		}
	}
	params := make(map[*ir.Value]bool, len(t.Params))
	for _, p := range t.Params {
		params[p.Value] = true
	}
	// In reverse order, the gradient of a result is complete when its producer is reached.
	for _, n := range slices.Backward(t.forward) {
		last := t.Graph().Last()
		if err := t.inputGradients(n); err != nil {
			return fmt.Errorf("%s: %w", n.Place(), err)
		}
		// All nodes that the rule of n added: rules need not know of names.
		for made := last.Next(); made != nil; made = made.Next() {
			t.gradients.name(made, n, params)
		}
	}
	for _, p := range t.Params {
		p.Grad = t.gradients.sums[p.Value]
	}
	// After all gradients exist: which results the backward pass reads is known only then.
	t.storeBases()
	if !t.plain {
		t.storeMasks()
	}
	return nil
}

// forwardValues returns inputs and results of the forward graph, in order.
func (t *Tape) forwardValues() []*ir.Value {
	t.Close()
	vs := slices.Clone(t.Graph().Inputs)
	for _, n := range t.forward {
		vs = append(vs, n.Outputs...)
	}
	return vs
}

// inputGradients adds the gradients of n's inputs.
func (t *Tape) inputGradients(n *ir.Node) error {
	dy := make([]*ir.Value, len(n.Outputs))
	some := false
	for i, v := range n.Outputs {
		if v != nil && t.Needs(v) {
			dy[i] = t.gradients.sums[v]
			some = some || dy[i] != nil
		}
	}
	// No gradient reaches n, or no input of n depends on a parameter.
	if !some || !slices.ContainsFunc(n.Inputs(), t.Needs) {
		return nil
	}
	r := lookup(n.Op)
	if r == nil {
		return errors.New("the gradient of this operator is not supported; exclude the weights before it from training")
	}
	dx, err := r.Backward(t, n, dy)
	if err != nil {
		return err
	}
	for i, v := range n.Inputs() {
		if i < len(dx) && dx[i] != nil && t.Needs(v) {
			t.gradients.add(v, dx[i])
		}
	}
	return nil
}
