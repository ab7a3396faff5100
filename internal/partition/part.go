package partition

import "github.com/mcompress/mcompress/ir"

// A part is the nodes and values of one stage.
type part struct {
	nodes, constantNodes map[*ir.Node]bool // partitioned nodes, and constant-only nodes
	consts               ordered[*ir.Value]
	inputs               ordered[*ir.Value]
	outputs              ordered[*ir.Value]
}

// An ordered is a list without duplicates.
type ordered[T comparable] struct {
	list []T
	set  map[T]bool
}

func (o *ordered[T]) add(more ...T) {
	if o.set == nil {
		o.set = map[T]bool{}
	}
	for _, x := range more {
		if !o.set[x] {
			o.set[x] = true
			o.list = append(o.list, x)
		}
	}
}

// part collects stage k. Model outputs that no partitioned node produces belong to the last
// stage.
func (o *outline) part(starts []int, k int) *part {
	first, end := starts[k], starts[k+1]
	p := &part{nodes: map[*ir.Node]bool{}, constantNodes: map[*ir.Node]bool{}}
	for i, n := range o.nodes[first:end] {
		p.nodes[n] = true
		p.addConstants(o, n)
		for v := range reads(n) {
			p.addInput(o, v, first)
		}
		for _, v := range o.laterOutputs(first + i) {
			if o.last[v] >= end {
				p.outputs.add(v)
			}
		}
	}
	if end == len(o.nodes) {
		p.addUnproduced(o)
	}
	return p
}

// addConstants adds the constants of n.
func (p *part) addConstants(o *outline, n *ir.Node) {
	p.consts.add(o.consts[n]...)
	for _, a := range o.constantNodes[n] {
		p.constantNodes[a] = true
	}
}

// addInput adds v if an earlier stage produces it or is a model input.
func (p *part) addInput(o *outline, v *ir.Value, first int) {
	n := v.Producer()
	if at, cut := o.at[n]; v.Const == nil && (n == nil || cut && at < first) {
		p.inputs.add(v)
	}
}

// addUnproduced adds the model outputs that are inputs or depend on constants only.
func (p *part) addUnproduced(o *outline) {
	for _, v := range o.graph.Outputs {
		n := v.Producer()
		_, cut := o.at[n]
		switch {
		case cut:
			continue
		case v.Const != nil:
			p.consts.add(v)
		case n == nil:
			p.inputs.add(v)
		default:
			p.constantNodes[n] = true
			p.addConstants(o, n)
		}
		p.outputs.add(v)
	}
}
