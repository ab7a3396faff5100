package memplan

import (
	"slices"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A recorder records the forward pass of a training step of one graph.
type recorder struct {
	tape     memory.Tape
	types    map[string]ir.Spec
	width    int64 // bytes of a float32 between layers
	index    map[*ir.Value]int
	grads    map[*ir.Value]bool // values that depend on parameters
	backward map[*ir.Node]bool  // nodes on a path from parameters to outputs

	params  []*ir.Value
	ops     []string // of the tape's nodes
	unknown int      // values of data-dependent size
}

// record is the tape of g with values of these types.
func record(g *ir.Graph, types map[string]ir.Spec, width int64) (*recorder, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	r := &recorder{types: types, width: width, index: map[*ir.Value]int{}, grads: map[*ir.Value]bool{}, backward: map[*ir.Node]bool{}}
	r.params = parameters(g)
	r.propagateGradients(g, order)
	for _, v := range g.Inputs {
		if v.Const == nil {
			r.value(v)
		}
	}
	for _, n := range order {
		r.node(n)
	}
	for _, v := range g.Outputs {
		if i, made := r.index[v]; made {
			r.tape.Values[i].Output = true
		}
	}
	return r, nil
}

// parameters are the constants of g that training updates, each once: floats of at least one axis with a use that is
// neither a running statistic, nor a bound or factor, nor a scale of quantized data.
func parameters(g *ir.Graph) []*ir.Value {
	var list []*ir.Value
	for _, v := range g.Consts() {
		if v.Const.DType.IsFloat() && len(v.Const.Shape) > 0 && slices.ContainsFunc(v.Uses(), isUpdated) {
			list = append(list, v)
		}
	}
	return list
}

func isUpdated(u ir.Use) bool {
	if u.Node == nil {
		return false
	}
	f := operator.Of(u.Node)
	if _, scale := f.QuantizedBy(u.Index); scale {
		return false
	}
	r := f.Input(u.Index).Role
	return r != operator.Statistic && r != operator.Setting
}

// hasParameters reports whether a subgraph of n, or the function that it calls, has parameters.
func hasParameters(n *ir.Node) bool {
	for g := range n.Subgraphs() {
		if graphHasParameters(g) {
			return true
		}
	}
	f := n.Callee()
	return f != nil && graphHasParameters(f.Body)
}

func graphHasParameters(g *ir.Graph) bool {
	if len(parameters(g)) > 0 {
		return true
	}
	for n := range g.Nodes() {
		if hasParameters(n) {
			return true
		}
	}
	return false
}

// propagateGradients finds the values with a gradient: floats on a path from parameters to an output.
func (r *recorder) propagateGradients(g *ir.Graph, order []*ir.Node) {
	for _, v := range r.params {
		r.grads[v] = true
	}
	for _, n := range order {
		if !slices.ContainsFunc(n.Inputs(), r.has) && !hasParameters(n) {
			continue
		}
		for _, v := range n.Outputs {
			if s, known := r.spec(v); known && s.DType.IsFloat() {
				r.grads[v] = true
			}
		}
	}
	leads := map[*ir.Value]bool{}
	for _, v := range g.Outputs {
		leads[v] = r.grads[v]
	}
	for _, n := range slices.Backward(order) {
		if r.backward[n] = slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return v != nil && leads[v] }); !r.backward[n] {
			continue
		}
		for _, v := range n.Inputs() {
			leads[v] = leads[v] || r.has(v)
		}
	}
}

func (r *recorder) has(v *ir.Value) bool { return v != nil && r.grads[v] }

// spec is the type of v.
func (r *recorder) spec(v *ir.Value) (ir.Spec, bool) {
	switch {
	case v == nil:
		return ir.Spec{}, false
	case v.Const != nil:
		return v.Const.Spec, true
	}
	s, known := r.types[v.Name]
	return s, known
}

// value adds v to the tape.
func (r *recorder) value(v *ir.Value) int {
	spec, known := r.spec(v)
	if !known {
		r.unknown++
	}
	bytes := spec.Bytes()
	if spec.DType == ir.Float {
		bytes = spec.Elems() * r.width
	}
	r.index[v] = len(r.tape.Values)
	r.tape.Values = append(r.tape.Values, memory.TapeValue{Name: v.Name, Bytes: bytes, Grad: r.grads[v]})
	return r.index[v]
}

// node adds n to the tape.
func (r *recorder) node(n *ir.Node) {
	saved := savedBy(n)
	out := memory.TapeNode{Name: n.Label(), View: operator.Of(n).Move == operator.View, Backward: r.backward[n]}
	for i, v := range n.Inputs() {
		at, known := r.index[v]
		if !known {
			continue
		}
		out.Reads = append(out.Reads, at)
		if spec, _ := r.spec(v); saved.StoresInput(n, i, spec.DType.IsFloat(), r.has) {
			out.Saves = append(out.Saves, at)
		} else if saved.Has(operator.Overwrites) {
			out.Over = append(out.Over, at)
		}
	}
	for _, v := range n.Outputs {
		if v != nil && (len(v.Uses()) > 0 || len(out.Makes) == 0) {
			out.Makes = append(out.Makes, r.value(v))
		}
	}
	if saved.StoresOutput(n, r.has) {
		out.Saves = append(out.Saves, out.Makes...)
	}
	if extra := extraBytes[operator.Name(n.Op)]; extra != nil {
		x, _ := r.spec(n.Input(0))
		y, _ := r.spec(n.Outputs[0])
		out.Extra = extra(n, x, y)
	}
	r.tape.Nodes, r.ops = append(r.tape.Nodes, out), append(r.ops, n.Op.String())
}
