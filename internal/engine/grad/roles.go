package grad

import (
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Role is the purpose of a value of a training step.
type Role struct {
	Phase Phase       // that computes it
	Layer *ir.Node    // of the forward graph, to which it belongs; nil for losses
	Kind  memory.Kind // Activation, Recomputed or Gradient
}

// Roles returns the roles of the results of all nodes, by name. It is called after Backward and the changes of
// activations, and before the nodes of updates are added.
func (a *Activations) Roles() map[string]Role {
	forward, phases, roles := a.forwardSet(), a.phases(), map[string]Role{}
	for n := range a.Graph().Nodes() {
		r := Role{Kind: memory.Gradient, Layer: a.gradients.layers[n]}
		switch {
		case forward[n]:
			r = Role{Kind: memory.Activation, Layer: n}
		case a.copies[n] != nil:
			r = Role{Kind: memory.Recomputed, Layer: a.copies[n]}
		case a.forms[n]:
			r = roles[n.Input(0).Name]
		}
		for _, v := range n.Outputs {
			if v != nil {
				r.Phase = phases[v.Name]
				roles[v.Name] = r
			}
		}
	}
	return roles
}

// Recomputed returns the multiply-adds of the recomputation in the backward pass.
func (a *Activations) Recomputed() float64 { return a.recomputed }
