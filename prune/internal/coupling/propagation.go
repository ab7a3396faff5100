package coupling

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A propagation follows channels from node to node, by a rule for each operator.
type propagation struct {
	*channelMap
	*constants
	shapes
}

// follow applies the rule of n's operator to the channels that it reads.
func (p *propagation) follow(n *ir.Node) {
	rule := ruleOf(n)
	switch attr := pass.FromCaller(n); {
	case rule == nil || len(n.Outputs) == 0:
		p.unsupported(n, "is not supported")
	case attr != "":
		p.unsupported(n, "gets its attribute "+attr+" from the function's caller")
	default:
		rule(p, n)
	}
}

// unsupported keeps all channels that n reads, and skips its constants; the reason names n.
func (p *propagation) unsupported(n *ir.Node, what string) {
	why := fmt.Sprintf("channels are not followed through %s %s", n.Op, n.Label())
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil {
			p.keep(n, a.channels, what)
			why = fmt.Sprintf("its channels reach %s %s, which %s", n.Op, n.Label(), what)
		}
	}
	for i := range n.Inputs() {
		p.skip(n, i, why)
	}
}

// naming is operator and name of a node.
func naming(n *ir.Node) string {
	return fmt.Sprintf("its channels reach %s %s", n.Op, n.Label())
}

// borders keeps what is used from outside: graph outputs, values that subgraphs read, and
// constants that some node reads in an unknown way.
func (p *propagation) keepBorders() {
	for _, v := range p.made {
		for _, u := range v.Uses() {
			if u.Node == nil {
				p.classes.keep(p.axes[v].channels, fmt.Sprintf("its channels are those of the output %q", v.Name))
			} else if u.Node.Graph() != v.Graph() {
				p.keep(u.Node, p.axes[v].channels, "is in a subgraph")
			}
		}
	}
	for _, s := range p.order {
		for _, l := range pass.LeafUses(s.v) {
			if !p.used[l] {
				s.keep(p.channelMap, l)
			}
		}
	}
}
