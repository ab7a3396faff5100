package grad

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// nameBackward names a node of the backward pass of n, for profiles and errors: "backward of conv1 (input, weights)" computes the gradients of these
// inputs, "backward of conv1" a part of them.
func (t *Tape) nameBackward(made, n *ir.Node, weights map[*ir.Value]bool) {
	t.layers[made] = n
	var of []string
	for _, v := range made.Outputs {
		x := t.of[v]
		if x == nil {
			continue
		}
		what := "input"
		if weights[x] {
			what = "weights"
		}
		if !slices.Contains(of, what) {
			of = append(of, what)
		}
	}
	made.Name = "backward of " + n.Label()
	if len(of) > 0 {
		made.Name += " (" + strings.Join(of, ", ") + ")"
	}
}

// weights returns the set of the inputs that are parameters.
func (t *Tape) weights() map[*ir.Value]bool {
	set := make(map[*ir.Value]bool, len(t.Params))
	for _, p := range t.Params {
		set[p.Value] = true
	}
	return set
}

// markGradient records that dv is a gradient of v, or a summand of it. A gradient that a node passes on unchanged is that of its result.
func (t *Tape) markGradient(dv, v *ir.Value) {
	if t.of[dv] == nil {
		t.of[dv] = v
	}
}
