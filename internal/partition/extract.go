package partition

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// extract reduces m, another reading of the planned model, to stage k: its nodes, the constants and functions
// that they need, and its inputs and outputs, with the names of the values in the whole model. All other
// properties of the model are unchanged.
func (p *Plan) extract(m *ir.Model, k int) error {
	o, err := newOutline(m.Graph)
	if err != nil {
		return err
	}
	// The plan has indices of nodes, not nodes: the file is opened again for each stage.
	if len(o.nodes) != p.starts[len(p.starts)-1] {
		return errChanged
	}
	return o.extract(p.starts, p.declared, k)
}

var errChanged = errors.New("the file changed while it was being read")

// extract reduces the graph of o to the nodes of stage k, and its model to the functions that they call.
func (o *outline) extract(starts []int, types map[string]*ir.Type, k int) error {
	part := o.part(starts, k)
	for _, v := range slices.Concat(part.inputs.list, part.outputs.list) {
		if err := declare(v, types); err != nil {
			return err
		}
	}
	g := o.graph
	// Before the removal: the outputs of a node that is removed have no consumers left. Consumers are removed before their
	// producers for the same reason.
	g.SetOutputs(part.results(g)...)
	g.Inputs = part.entries(g)
	for _, n := range slices.Backward(o.order) {
		if !part.nodes[n] && !part.constantNodes[n] {
			n.Remove()
		}
	}
	// Constants lose their last consumers with the nodes, and functions their calls with both.
	dropConsts(g)
	dropFunctions(g.Model())
	return inOrder(g)
}

// declare sets the type of a value that is passed between files.
func declare(v *ir.Value, types map[string]*ir.Type) error {
	if v.Type != nil && v.Type.Shape != nil && v.Type.Elem.Known() || v.IsInput() {
		return nil
	}
	t := types[v.Name]
	if t == nil && v.Producer() != nil && v.Type == nil {
		return nil // a model output that is not a tensor keeps its declaration
	}
	if t == nil {
		return fmt.Errorf("value %q: unknown type", v.Name)
	}
	v.Type = t
	return nil
}

// results are the part's outputs: model outputs first, in model order.
func (p *part) results(g *ir.Graph) []*ir.Value {
	return sorted(p.outputs.list, g.Outputs)
}

// sorted is list with the elements of ranked first, in its order.
func sorted(list, ranked []*ir.Value) []*ir.Value {
	var all, out ordered[*ir.Value]
	all.add(list...)
	for _, v := range ranked {
		if all.set[v] {
			out.add(v)
		}
	}
	out.add(list...)
	return out.list
}

// entries are the part's inputs: model inputs first, in model order, then outputs of earlier stages.
// Constants among the model's inputs stay with the stages that need them.
func (p *part) entries(g *ir.Graph) []*ir.Value {
	var list []*ir.Value
	for _, v := range g.Inputs {
		if p.inputs.set[v] || v.Const != nil && p.consts.set[v] {
			list = append(list, v)
		}
	}
	for _, v := range p.inputs.list {
		if v.Producer() == nil {
			continue
		}
		// The producer is in an earlier stage and is removed here, so that its value cannot be the input itself.
		in := g.AddValue(v.Name)
		in.Type = v.Type
		v.ReplaceUses(in)
		list = append(list, in)
	}
	return list
}

// dropConsts removes unused constants.
func dropConsts(g *ir.Graph) {
	for _, v := range slices.Clone(g.Consts()) {
		if len(v.Uses()) == 0 {
			g.RemoveConst(v)
		}
	}
}

// dropFunctions removes functions without calls.
func dropFunctions(m *ir.Model) {
	called := map[ir.OpID]bool{}
	var mark func(g *ir.Graph)
	byID := map[ir.OpID]*ir.Function{}
	for _, f := range m.Functions {
		byID[f.ID] = f
	}
	mark = func(g *ir.Graph) {
		for n := range g.Nodes() {
			if f := byID[n.Op]; f != nil && !called[n.Op] {
				called[n.Op] = true
				mark(f.Body)
			}
			for sub := range n.Subgraphs() {
				mark(sub)
			}
		}
	}
	mark(m.Graph)
	m.Functions = slices.DeleteFunc(m.Functions, func(f *ir.Function) bool { return !called[f.ID] })
}

// inOrder sorts g topologically if necessary: a stage is valid even if the model is not.
func inOrder(g *ir.Graph) error {
	if order, err := g.Order(); err == nil && slices.Equal(order, slices.Collect(g.Nodes())) {
		return nil
	}
	return g.Sort()
}
