package prune

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// submodelsOf are the submodels that nodes, in topological order, belong to, by the inputs of the graph that they
// depend on.
func submodelsOf(g *ir.Graph, nodes []*ir.Node) map[*ir.Node]pass.Submodel {
	inputs := slices.DeleteFunc(slices.Clone(g.Inputs), func(v *ir.Value) bool {
		return pass.SubmodelOf([]string{v.Name}) == ""
	})
	if len(inputs) > 64 { // as past keys of many layers, which are inputs of the decoder
		slices.SortStableFunc(inputs, func(a, b *ir.Value) int { return len(a.Name) - len(b.Name) })
		inputs = inputs[:64]
	}
	depends := map[*ir.Node]uint64{} // a bit for each input
	known, submodels := map[uint64]pass.Submodel{}, map[*ir.Node]pass.Submodel{}
	for _, n := range nodes {
		for _, v := range outer(n) {
			if p := v.Producer(); p != nil {
				depends[n] |= depends[p]
			} else if i := slices.Index(inputs, v); i >= 0 {
				depends[n] |= 1 << i
			}
		}
		set := depends[n]
		if _, ok := known[set]; !ok {
			var names []string
			for i, v := range inputs {
				if set>>i&1 != 0 {
					names = append(names, v.Name)
				}
			}
			known[set] = pass.SubmodelOf(names)
		}
		submodels[n] = known[set]
	}
	return submodels
}
