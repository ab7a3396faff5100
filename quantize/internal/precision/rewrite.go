package precision

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// Apply sets the types of the values of m and inserts Cast nodes where a use needs the other type: one Cast for all
// such uses of a value. Constants are left to the caller, except those in attributes, which narrowed
// converts.
func (p *Plan) Apply(m *ir.Model, narrowed func(*ir.Tensor) *ir.Tensor) {
	for g := range m.Graphs() {
		for n := range g.Nodes() {
			// First: a Cast whose output can be narrow needs no second one after it.
			p.retarget(n, narrowed)
		}
	}
	for g := range m.Graphs() {
		// Borders after all types are set: which uses need a Cast depends on nodes of other graphs.
		for _, v := range slices.Clone(g.Inputs) {
			p.border(v, g.First())
		}
		for n := range g.Nodes() {
			for _, v := range n.Outputs {
				p.border(v, n.Next())
			}
		}
	}
	p.removeIdleCasts(m)
}

// retarget makes a Cast or ConstantOfShape output the narrow type if planned, or if all
// its consumers need it.
func (p *Plan) retarget(n *ir.Node, narrowed func(*ir.Tensor) *ir.Tensor) {
	switch {
	case n.Op.Is("Cast"):
		if p.retargetable(n) {
			n.SetAttr(ir.IntAttr("to", int64(p.To)))
		}
		return
	case !n.Op.Is("ConstantOfShape"), !p.retargetable(n):
		return
	}
	zero := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: ir.Mem(make([]byte, 4))}
	if a := n.Attr("value"); a != nil && a.Tensor != nil {
		zero = a.Tensor
	}
	n.SetAttr(ir.TensorAttr("value", narrowed(zero)))
}

// retargetable reports whether the output of n becomes narrow, and plans it.
func (p *Plan) retargetable(n *ir.Node) bool {
	y := n.Outputs[0]
	if !p.is(y) || !p.low[y] && !p.allNarrow(y) {
		return false
	}
	if n.Op.Is("Cast") && !p.low[y] && p.Limit(y) > 0 {
		return false // it is clamped first
	}
	p.low[y] = true
	return true
}

func (p *Plan) allNarrow(v *ir.Value) bool {
	for _, u := range v.Uses() {
		if p.want(u) != narrow {
			return false
		}
	}
	return len(v.Uses()) > 0
}

// border sets v's type, and inserts a Cast before at for the uses that need the other type.
func (p *Plan) border(v *ir.Value, at *ir.Node) {
	if v == nil || v.Const != nil || !p.is(v) {
		return
	}
	unwanted, to := narrow, p.To
	if p.low[v] {
		unwanted, to = wide, ir.Float
	}
	was := v.Type
	var others []ir.Use
	for _, u := range v.Uses() {
		if p.want(u) == unwanted {
			others = append(others, u)
		}
	}
	if p.low[v] {
		v.Type = retyped(was, p.To)
	}
	if len(others) == 0 {
		return
	}
	from := v
	// Clamped before it would become infinite: a row of infinities is NaN after Softmax.
	if limit := p.Limit(v); limit > 0 && !p.low[v] {
		from = p.clamped(v, at, limit)
	}
	w := v.Graph().Insert(at, "Cast", []*ir.Value{from}, ir.IntAttr("to", int64(to)))
	w.Type = retyped(was, to)
	for _, u := range others {
		move(u, v, w)
	}
}

// clipInputs is the first opset in which the bounds of Clip are inputs.
const clipInputs = 11

// clamped is v between -limit and limit, before at.
func (p *Plan) clamped(v *ir.Value, at *ir.Node, limit float32) *ir.Value {
	g := v.Graph()
	// Bounds are attributes there.
	if g.Opset("") < clipInputs {
		return g.Insert(at, "Clip", []*ir.Value{v}, ir.FloatAttr("min", -limit), ir.FloatAttr("max", limit))
	}
	bound := func(x float32) *ir.Value {
		root := g
		// In the main graph, where all subgraphs see it.
		for root.Outer != nil {
			root = root.Outer
		}
		k := bound{root, x}
		if p.bounds[k] == nil {
			p.bounds[k] = root.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Mem(ir.Floats(x))})
		}
		return p.bounds[k]
	}
	return g.Insert(at, "Clip", []*ir.Value{v, bound(-limit), bound(limit)})
}

// A bound is a constant of a main graph or function body.
type bound struct {
	root *ir.Graph
	x    float32
}

func retyped(t *ir.Type, dt ir.DType) *ir.Type {
	if t == nil {
		return nil
	}
	return &ir.Type{Elem: dt, Shape: t.Shape}
}

// move makes u, a use of v, read w. A graph output keeps its name.
func move(u ir.Use, v, w *ir.Value) {
	if u.Node != nil {
		u.Node.SetInput(u.Index, w)
		return
	}
	outputs := slices.Clone(u.Graph.Outputs)
	outputs[u.Index] = w
	u.Graph.SetOutputs(outputs...)
	// A model's outputs are found by their names.
	v.Name, w.Name = w.Name, v.Name
}

// removeIdleCasts removes Casts whose input has the output type already.
func (p *Plan) removeIdleCasts(m *ir.Model) {
	for n := range m.Nodes() {
		// Casts of the source to the narrow type, whose input has it now.
		if !n.Op.Is("Cast") || n.Int("to", 0) != int64(p.To) || !p.narrowed(n.Input(0)) || isGraphOutput(n.Outputs[0]) {
			continue
		}
		n.Outputs[0].ReplaceUses(n.Input(0))
		n.Remove()
	}
}

// narrowed reports whether v has the narrow type, by plan or originally.
func (p *Plan) narrowed(v *ir.Value) bool {
	return p.low[v] || v.Const == nil && opset.Elem(v) == p.To
}

// isGraphOutput reports whether v is a graph output, which must keep its name.
func isGraphOutput(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil })
}
