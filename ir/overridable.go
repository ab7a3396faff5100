package ir

import "slices"

// listedInputs is the IR version up to which every initializer is a graph input, and none of them is meant to be
// overridden.
const listedInputs = 3

// Overridable reports whether callers may run the model with another value than that of the constant v: it is an input,
// with the constant as its default.
func (v *Value) Overridable() bool {
	return v.Const != nil && v.IsInput() && (v.graph.model.IRVersion > listedInputs || v.graph != v.graph.model.Graph)
}

// Initializer is v's constant or, while HideDefaults hides it, its default; nil if it has neither.
func (v *Value) Initializer() *Tensor {
	if v.Const == nil {
		return v.Default
	}
	return v.Const
}

// HideDefaults makes overridable constants plain inputs until restore is called, and returns them in file order:
// whatever rewrites the model meanwhile does not take them for constants. Initializer returns their tensors to those
// who run the model. A second call of restore has no effect.
func (m *Model) HideDefaults() (hidden []*Value, restore func()) {
	before := map[*Graph][]*Value{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if !v.Overridable() {
				continue
			}
			// Before the first is hidden: Consts drops values without a constant from its list.
			if before[g] == nil {
				before[g] = slices.Clone(g.Consts())
			}
			hidden = append(hidden, v)
		}
	}
	for _, v := range hidden {
		v.Const, v.Default, v.graph.stale = nil, v.Const, true
	}
	return hidden, func() {
		for _, v := range hidden {
			v.Const, v.Default = v.Default, nil
		}
		hidden = nil
		for g, old := range before {
			g.restoreOrder(old)
		}
		clear(before)
	}
}

// restoreOrder gives g's constants, of which some were hidden, the order that they had; newer ones are at the end.
func (g *Graph) restoreOrder(old []*Value) {
	known := map[*Value]bool{}
	for _, v := range old {
		known[v] = true
	}
	newer := slices.DeleteFunc(slices.Clone(g.consts), func(v *Value) bool { return known[v] })
	g.consts, g.stale = slices.Concat(old, newer), true
}
