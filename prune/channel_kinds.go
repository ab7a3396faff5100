package prune

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// A channelKind is a kind of channels. Channels of the zero kind are all but attention heads.
type channelKind uint8

const (
	filters channelKind = iota
	neurons             // between linear layers
	attentionHeads
)

// kindOf is the kind of a group.
func kindOf(g *coupling.Group) channelKind {
	switch {
	case g.Heads:
		return attentionHeads
	case slices.ContainsFunc(g.Sources, func(s coupling.Source) bool { return !operator.Of(s.Node).Product() }):
		return filters
	}
	return neurons
}

// includes reports whether a method for k removes channels of another kind.
func (k channelKind) includes(kind channelKind) bool {
	return k == kind || k == filters && kind == neurons
}

// methods are the methods that remove channels of the kind.
func (k channelKind) methods() string {
	return [...]string{"channel", "channel, ffn", "heads"}[k]
}

// An architecture is the numbers of heads and neurons that configuration has, also those of layers that are as before,
// so that one number is stated only for layers that have it in common.
type architecture struct {
	values    []pass.ConfigValue
	submodels map[*ir.Node]pass.Submodel
	attends   map[*ir.Node]bool // products of two activations, and whole attentions
}

// add adds a number of the layer of n, and what it is after pruning.
func (a *architecture) add(name string, n *ir.Node, from, to, headSize int) {
	i := slices.IndexFunc(a.values, func(v pass.ConfigValue) bool {
		return v.Name == name && v.From == from && v.Submodel == a.submodels[n]
	})
	if i < 0 {
		i, a.values = len(a.values), append(a.values, pass.ConfigValue{Name: name, Submodel: a.submodels[n], From: from,
			HeadSize: headSize})
	}
	v := &a.values[i]
	if at, found := slices.BinarySearch(v.To, to); !found {
		v.To = slices.Insert(v.To, at, to)
	}
}

// configValues are the numbers that configuration has, of those kinds that pruning changes. Neurons between linear
// layers are those of a transformer if it has an attention, and if they are not what the attention reads.
func (o Channel) configValues(m *ir.Model, plan *coupling.Plan, groups []*coupling.Group,
	pruned map[coupling.Channel]bool) ([]pass.ConfigValue, error) {
	nodes, err := m.Graph.Order()
	if err != nil {
		return nil, err
	}
	a := &architecture{submodels: submodelsOf(m.Graph, nodes), attends: map[*ir.Node]bool{}}
	if err := a.heads(m, plan.HeadCounts(pruned)); err != nil {
		return nil, err
	}
	for _, g := range groups {
		left := len(g.Classes)
		for _, u := range g.Classes {
			if pruned[u] {
				left--
			}
		}
		if kindOf(g) == neurons && (len(a.attends) > 0 || o.removes == neurons) &&
			!a.feedsAttention(g.Sources[0].Node, map[*ir.Node]bool{}) {
			a.add(pass.IntermediateSize, g.Sources[0].Node, len(g.Classes)*g.Each, left*g.Each, 0)
		}
	}
	changed := map[string]bool{}
	for _, v := range a.values {
		changed[v.Name] = changed[v.Name] || v.Changed()
	}
	// else that number would be taken for that of heads
	changed[pass.KeyValueHeads] = changed[pass.KeyValueHeads] || changed[pass.AttentionHeads]
	return slices.DeleteFunc(a.values, func(v pass.ConfigValue) bool { return !changed[v.Name] }), nil
}

// feedsAttention reports whether an attention reads the result of n before another layer does.
func (a *architecture) feedsAttention(n *ir.Node, seen map[*ir.Node]bool) bool {
	if seen[n] {
		return false
	}
	seen[n] = true
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		for _, u := range v.Uses() {
			if u.Node != nil &&
				(a.attends[u.Node] || !operator.Of(u.Node).Product() && a.feedsAttention(u.Node, seen)) {
				return true
			}
		}
	}
	return false
}

// heads finds attentions and adds the numbers of heads.
func (a *architecture) heads(m *ir.Model, counts []coupling.HeadCounts) error {
	known := map[*ir.Node]bool{}
	for _, c := range counts {
		known[c.Node] = true
		a.add(pass.AttentionHeads, c.Node, c.Heads, c.HeadsLeft, c.Size)
		if c.KeyValues < c.Heads {
			a.add(pass.KeyValueHeads, c.Node, c.KeyValues, c.KeyValuesLeft, 0)
		}
	}
	for g := range m.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			return err
		}
		f := newFlow(nodes)
		for _, n := range slices.DeleteFunc(f.nodes, func(n *ir.Node) bool { return !f.isAttention(n) }) {
			a.attends[n] = true
			if known[n] || !weighs(n) {
				continue
			}
			for _, v := range a.values { // heads that are not known are as before
				if v.Submodel == a.submodels[n] {
					a.add(v.Name, n, v.From, v.From, 0)
				}
			}
		}
	}
	return nil
}

// weighs reports whether n is the product of an attention with its weights, the result of a softmax, or a whole
// attention.
func weighs(n *ir.Node) bool {
	for range maxMoves {
		f := operator.Of(n)
		if f.Attention || f.Distribution {
			return true
		}
		in := n.Input(0)
		if in == nil || in.Producer() == nil {
			return false
		}
		n = in.Producer()
		if f := operator.Of(n); f.Product() {
			return false
		}
	}
	return false
}

// maxMoves is larger than the number of nodes between the softmax of an attention and the product: casts, masks,
// dropout.
const maxMoves = 8
