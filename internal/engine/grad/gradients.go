package grad

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// gradients are the results of the backward pass, and to which values and nodes of the forward graph its own belong.
type gradients struct {
	b       *Builder
	sums    map[*ir.Value]*ir.Value // gradients by values of the forward graph
	origins map[*ir.Value]*ir.Value // values of the forward graph by their gradients, and by summands of these
	layers  map[*ir.Node]*ir.Node   // nodes of the forward graph by those of their backward pass
}

func newGradients(b *Builder) *gradients {
	return &gradients{b: b, sums: map[*ir.Value]*ir.Value{}, origins: map[*ir.Value]*ir.Value{},
		layers: map[*ir.Node]*ir.Node{}}
}

// add adds dv to the gradient of v.
func (g *gradients) add(v, dv *ir.Value) {
	g.mark(dv, v)
	if sum := g.sums[v]; sum != nil {
		dv = g.b.Op("Add", []*ir.Value{sum, dv})
		g.mark(dv, v)
	}
	g.sums[v] = dv
}

// mark records that dv is a gradient of v, or a summand of it. A gradient that a node passes on unchanged is that of
// its result.
func (g *gradients) mark(dv, v *ir.Value) {
	if g.origins[dv] == nil {
		g.origins[dv] = v
	}
}

// name names a node of the backward pass of n, for profiles and errors: "backward of conv1 (input, weights)" computes
// the gradients of these inputs, "backward of conv1" a part of them. params are the inputs of the step that are
// trained.
func (g *gradients) name(made, n *ir.Node, params map[*ir.Value]bool) {
	g.layers[made] = n
	var of []string
	for _, v := range made.Outputs {
		x := g.origins[v]
		if x == nil {
			continue
		}
		what := "input"
		if params[x] {
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
