package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A propagation follows channels from node to node, by a rule for each operator.
type propagation struct {
	*channelMap
	*constants
	shapes

	targets []counts // computed at run time from sizes of values
	counted []*ir.Node
}

// applyRule applies the rule of n's operator to the channels that it reads.
func (p *propagation) applyRule(n *ir.Node) {
	rule := ruleOf(n)
	switch caller := pass.FromCaller(n); {
	case rule == nil || len(n.Outputs) == 0:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsOperator})
	case !caller.None():
		p.unsupported(n, caller)
	case p.outer(n) && !carriesOuter(n):
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "channels merged with other axes"})
	default:
		rule(p, n)
		if p.outer(n) && !n.Op.Is("Reshape") {
			for _, v := range n.Outputs {
				if a := p.axes[v]; a != nil {
					a.outer = true
				}
			}
		}
	}
}

// outer reports whether n reads channels that are merged with axes before them.
func (p *propagation) outer(n *ir.Node) bool {
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil && a.outer {
			return true
		}
	}
	return false
}

// carriesOuter reports whether n's rule supports channels that are merged with axes before them.
func carriesOuter(n *ir.Node) bool {
	return outerRules[operator.Name(n.Op)] != nil || operator.Of(n).Elementwise == operator.Unary
}

// unsupported keeps all channels that n reads, and skips its constants; the reason names n.
func (p *propagation) unsupported(n *ir.Node, reason pass.Reason) {
	unfollowed := pass.Reason{Code: pass.ChannelsOperator}
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil {
			p.keep(n, a.channels, reason)
			unfollowed = reason
		}
	}
	for i := range n.Inputs() {
		p.skip(n, i, unfollowed.At(n))
	}
}

// keepBorders keeps what is used from outside: graph outputs, values that subgraphs read, and
// constants that some node reads in an unknown way.
func (p *propagation) keepBorders() {
	p.keepSplits()
	p.keepCounted()
	heads := p.headClasses()
	for _, v := range p.keys {
		cache := p.isCache(heads, p.axes[v])
		if v.IsInput() && !cache {
			p.classes.keep(p.axes[v].channels, pass.Reason{Code: pass.ChannelsInput, Detail: v.Name})
		}
		for _, u := range v.Uses() {
			if u.Node == nil && cache && !p.axes[v].outer {
				continue
			}
			if u.Node == nil {
				p.classes.keep(p.axes[v].channels, pass.Reason{Code: pass.ChannelsOutput, Detail: v.Name})
			} else if u.Node.Graph() != v.Graph() {
				p.keep(u.Node, p.axes[v].channels, pass.Reason{Code: pass.ChannelsSubgraph})
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
