package prune

import (
	"slices"

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

// configValues are the numbers of heads and neurons that configuration has. Neurons between linear layers are those of a transformer if it
// has an attention.
func (o Channel) configValues(plan *coupling.Plan, groups []*coupling.Group, pruned map[coupling.Channel]bool) []pass.ConfigValue {
	var values []pass.ConfigValue
	add := func(name string, from, to, headSize int) {
		i := slices.IndexFunc(values, func(v pass.ConfigValue) bool { return v.Name == name && v.From == from })
		if i < 0 {
			i, values = len(values), append(values, pass.ConfigValue{Name: name, From: from, HeadSize: headSize})
		}
		if at, found := slices.BinarySearch(values[i].To, to); !found {
			values[i].To = slices.Insert(values[i].To, at, to)
		}
	}
	for _, c := range plan.HeadCounts(pruned) {
		add(pass.AttentionHeads, c.Heads, c.HeadsLeft, c.Size)
		if c.KeyValues < c.Heads {
			add(pass.KeyValueHeads, c.KeyValues, c.KeyValuesLeft, 0)
		}
	}
	for _, g := range groups {
		left := len(g.Classes)
		for _, u := range g.Classes {
			if pruned[u] {
				left--
			}
		}
		if left < len(g.Classes) && kindOf(g) == neurons && (o.removes == neurons || plan.HasAttention()) {
			add(pass.IntermediateSize, len(g.Classes)*g.Each, left*g.Each, 0)
		}
	}
	return values
}
