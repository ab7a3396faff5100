package precision

import "github.com/mcompress/mcompress/ir"

// A want is the type that a use needs.
type want uint8

const (
	whatever want = iota
	wide
	narrow
)

func typeOf(low bool) want {
	if low {
		return narrow
	}
	return wide
}

// Narrow reports whether u needs its float32 value in the narrow type.
func (p *Plan) Narrow(u ir.Use) bool { return p.want(u) == narrow }

func (p *Plan) want(u ir.Use) want {
	n := u.Node
	switch {
	case n == nil:
		return p.output(u)
	// A Cast reads either type.
	case n.Op.Is("Cast"):
		return whatever
	case controls(n):
		return p.subgraphInput(n, u.Index)
	case n.Callee() != nil:
		return typeOf(p.narrow[n])
	}
	in, _, _ := signature(n)
	q, ok := in.At(u.Index)
	return typeOf(ok && p.narrow[n] && q.Takes(p.To))
}

// subgraphInput is the type that n, an If, Loop or Scan, needs for its input i.
func (p *Plan) subgraphInput(n *ir.Node, i int) want {
	for g := range n.Subgraphs() {
		if i < len(g.Inputs) && ownerInput(n, i) >= 0 {
			return typeOf(p.low[g.Inputs[i]])
		}
	}
	return whatever
}

// output is the type that a graph output needs.
func (p *Plan) output(u ir.Use) want {
	g := u.Graph
	switch {
	case g.Owner == nil && g.Function() != nil:
		return typeOf(p.narrowFunctions[g.Function()])
	case g.Owner == nil:
		return typeOf(!p.KeepIO && p.OutOfRange(g.Outputs[u.Index]).None())
	case !controls(g.Owner):
		return wide
	}
	n, i := g.Owner, u.Index
	if n.Op.Is("Loop") {
		i--
	}
	if state := stateInput(n, g, i); state != nil {
		return typeOf(p.low[state])
	}
	if i < 0 || i >= len(n.Outputs) || n.Outputs[i] == nil {
		return whatever
	}
	return typeOf(p.low[n.Outputs[i]])
}
