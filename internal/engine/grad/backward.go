package grad

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Backward adds the backward pass: the nodes that compute the gradients of the parameters, and of inputs requested by Want, from the gradients
// of some values of the forward graph. It is called once.
func (t *Tape) Backward(seeds map[*ir.Value]*ir.Value) error {
	values := t.forwardValues()
	t.seeded = t.Graph().Last()
	for _, v := range values {
		if seeds[v] != nil {
			t.addGradient(v, seeds[v])
		}
	}
	weights := t.weights()
	for _, n := range slices.Backward(t.forward) {
		last := t.Graph().Last()
		if err := t.inputGradients(n); err != nil {
			return fmt.Errorf("%s: %w", n.Place(), err)
		}
		for made := last.Next(); made != nil; made = made.Next() {
			t.nameBackward(made, n, weights)
		}
	}
	for _, p := range t.Params {
		p.Grad = t.grads[p.Value]
	}
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
			dy[i] = t.grads[v]
			some = some || dy[i] != nil
		}
	}
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
			t.addGradient(v, dx[i])
		}
	}
	return nil
}

// addGradient adds dv to the gradient of v.
func (t *Tape) addGradient(v, dv *ir.Value) {
	t.markGradient(dv, v)
	if sum := t.grads[v]; sum != nil {
		dv = t.Op("Add", []*ir.Value{sum, dv})
		t.markGradient(dv, v)
	}
	t.grads[v] = dv
}
