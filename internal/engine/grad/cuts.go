package grad

import "github.com/mcompress/mcompress/ir"

// Cuts returns the results of nodes that all paths from the weights before them to the outputs contain, in order: the
// results of the layers of a chain, and of a residual network the results of its blocks.
func (t *Tape) Cuts() []*ir.Value {
	learned, at := t.weightResults(), t.positions()
	live := map[*ir.Value]int{} // the last positions of values that are consumed later
	var cuts []*ir.Value
	for n := range t.Graph().Nodes() {
		for _, v := range n.Outputs {
			if v != nil && learned[v] {
				live[v] = lastUse(v, at)
			}
		}
		for v, last := range live {
			if last <= at[n] {
				delete(live, v)
			}
		}
		// With one live value, all that follows depends on the weights before through this value alone.
		if len(live) != 1 {
			continue
		}
		for v := range live {
			if len(cuts) == 0 || cuts[len(cuts)-1] != v {
				cuts = append(cuts, v)
			}
		}
	}
	return cuts
}

// lastUse returns the position of the last consumer of v; an output is consumed right after it is computed.
func lastUse(v *ir.Value, at map[*ir.Node]int) int {
	last := at[v.Producer()]
	for _, u := range v.Uses() {
		if u.Node == nil {
			last = max(last, at[v.Producer()]+1)
		} else {
			last = max(last, at[u.Node])
		}
	}
	return last
}

// weightResults returns the results of nodes that depend on weights, trained or constant.
func (t *Tape) weightResults() map[*ir.Value]bool {
	learned := map[*ir.Value]bool{}
	for n := range t.Graph().Nodes() {
		depends := len(weightIndices(n, learned)) > 0
		for _, v := range n.Inputs() {
			depends = depends || learned[v] || t.Needs(v)
		}
		for _, v := range n.Outputs {
			if v != nil && depends && t.types[v].DType.IsFloat() {
				learned[v] = true
			}
		}
	}
	return learned
}
