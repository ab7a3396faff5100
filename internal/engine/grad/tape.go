package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Tape is the graph of a training step: a copy of a model's graph as the forward pass, and the backward pass.
type Tape struct {
	*Builder
	Params []*Param

	// Running are the running statistics of BatchNormalization that the step updates.
	Running         []RunningStatistic
	batchStatistics bool
	plain           bool // without rewrites that gradients do not require

	forward []*ir.Node            // in order, once Close was called
	seeded  *ir.Node              // the last node before the backward pass: of the model or of the losses
	inside  map[*ir.Node]bool     // the nodes of forward
	needs   map[*ir.Value]bool    // values that depend on a parameter
	results map[*ir.Value]ir.Spec // types of the results of both passes, once InferResults was called

	elements  constantElements
	gradients *gradients // of the backward pass
}

// A Param is a trained constant of the model. It is an input of the step, and the caller owns its array.
type Param struct {
	Name   string
	Tensor *ir.Tensor // before training
	Value  *ir.Value  // the step's input
	Grad   *ir.Value  // its gradient; nil if the loss does not depend on it
}

// Needs reports whether the gradient of v, which may be nil, is needed.
func (t *Tape) Needs(v *ir.Value) bool { return v != nil && t.needs[v] }

// Want requests the gradient of an input of the model, which Grad returns after Backward.
func (t *Tape) Want(v *ir.Value) {
	t.needs[v] = true
	t.markNeeds()
}

// Grad returns the gradient of a value after Backward, nil if there is none.
func (t *Tape) Grad(v *ir.Value) *ir.Value { return t.gradients.sums[v] }

// AddParam adds a parameter that is not a constant of the model, such as a projection of a loss.
func (t *Tape) AddParam(name string, tensor *ir.Tensor) *ir.Value {
	v := t.Input(name, tensor.DType, tensor.Shape...)
	t.Params = append(t.Params, &Param{Name: name, Tensor: tensor, Value: v})
	return v
}

// markNeeds marks all values that depend on a parameter.
func (t *Tape) markNeeds() {
	for _, p := range t.Params {
		t.needs[p.Value] = true
	}
	for n := range t.Graph().Nodes() {
		if r := lookup(n.Op); r != nil && r.Backward == nil {
			continue
		}
		if !slices.ContainsFunc(n.Inputs(), t.Needs) {
			continue
		}
		for _, v := range n.Outputs {
			if v != nil && t.types[v].DType.IsFloat() {
				t.needs[v] = true
			}
		}
	}
}

// Close ends the forward graph: nodes that are added later, such as those of losses, belong to the backward pass.
// Backward closes it, too.
func (t *Tape) Close() {
	if t.forward == nil {
		t.forward = slices.Collect(t.Graph().Nodes())
	}
}
