package onnx

import (
	"github.com/mcompress/mcompress/ir"
)

// An encoder lays out a model: everything but payloads becomes literal bytes.
type encoder struct {
	data     *dataFiles // where payloads of some size go, nil if they stay in the model file
	strip    bool       // without documentation
	metadata int64      // bytes of documentation so far
}

// extra is rope.extra of fields that may contain documentation.
func (e *encoder) extra(r *rope, x any) {
	cs, _ := x.(extra)
	for _, c := range cs {
		if c.doc && e.strip {
			continue
		}
		if c.doc {
			e.metadata += c.n + int64(len(c.lit))
		}
		r.chunks([]chunk{c})
	}
}

// model encodes m. metadata_props are last, so that values which are known only at
// the end do not hold up the rest.
func (e *encoder) model(m *ir.Model) *rope {
	r := &rope{}
	if m.IRVersion != 0 {
		r.varint(modelIRVersion, uint64(m.IRVersion))
	}
	x, _ := m.Extra.(*modelExtra)
	if x == nil {
		x = &modelExtra{}
	}
	r.extra(x.rest)
	for _, o := range m.Opsets {
		r.message(modelOpset, opsetRope(o))
	}
	r.message(modelGraph, e.graph(m.Graph))
	for _, t := range x.training {
		r.message(modelTraining, e.training(t))
	}
	for _, f := range m.Functions {
		r.message(modelFunctions, e.function(f))
	}
	for _, en := range m.Meta {
		r.message(modelMeta, entryRope(en))
	}
	return r
}

func (e *encoder) training(t *training) *rope {
	r := &rope{}
	if t.init != nil {
		r.message(trainingInit, e.graph(t.init))
	}
	if t.algorithm != nil {
		r.message(trainingAlgorithm, e.graph(t.algorithm))
	}
	r.extra(t.rest)
	return r
}

func opsetRope(o ir.Opset) *rope {
	r := &rope{}
	r.extra(o.Extra)
	r.optional(opsetDomain, o.Domain)
	r.varint(opsetVersion, uint64(o.Version))
	return r
}

func entryRope(en ir.Entry) *rope {
	r := &rope{}
	r.extra(en.Extra)
	r.optional(entryKey, en.Key)
	if en.Late == nil {
		r.optional(entryValue, en.Value)
		return r
	}
	r.head(entryValue, int64(len(en.Value)))
	r.gap(part{late: en.Late, n: int64(len(en.Value))})
	return r
}

func (e *encoder) function(f *ir.Function) *rope {
	r := &rope{}
	r.optional(functionName, f.ID.Type)
	if fx, ok := f.Extra.(*functionExtra); ok {
		e.extra(r, fx.rest)
		for _, a := range fx.defaults {
			r.message(functionDefault, e.attr(a))
		}
	}
	for _, v := range f.Body.Inputs {
		r.text(functionInput, v.Name)
	}
	for _, v := range f.Body.Outputs {
		r.text(functionOutput, v.Name)
	}
	e.nodes(r, functionNode, f.Body)
	for _, o := range f.Opsets {
		r.message(functionOpset, opsetRope(o))
	}
	r.optional(functionDomain, f.ID.Domain)
	r.optional(functionOverload, f.ID.Overload)
	e.infos(r, functionInfo, f.Body)
	return r
}

func (e *encoder) graph(g *ir.Graph) *rope {
	r := &rope{}
	e.nodes(r, graphNode, g)
	r.optional(graphName, g.Name)
	e.initializers(r, g)
	x, _ := g.Extra.(*graphExtra)
	if x == nil {
		x = &graphExtra{}
	}
	for _, v := range g.Inputs {
		e.info(r, graphInput, v, x.inputs[v.Name])
	}
	for _, v := range g.Outputs {
		e.info(r, graphOutput, v, x.outputs[v.Name])
	}
	e.infos(r, graphValueInfo, g)
	e.extra(r, x.rest)
	return r
}

// initializers writes g's constants that are not Constant nodes.
func (e *encoder) initializers(r *rope, g *ir.Graph) {
	for _, v := range g.Consts() {
		switch x := v.Extra.(type) {
		case *constNode:
			if x.tensor == v.Const {
				continue
			}
		case *sparseInit:
			if x.tensor == v.Const {
				r.chunks(x.raw)
				continue
			}
		}
		r.message(graphInitializer, e.tensor(v.Const, v.Name))
	}
}

// nodes writes g's nodes, lifted Constant nodes at their old places. A function's
// other constants are first, as functions have no initializers.
func (e *encoder) nodes(r *rope, n num, g *ir.Graph) {
	if g.Function() != nil && g.Outer == nil {
		for _, v := range g.Consts() {
			if c, ok := v.Extra.(*constNode); !ok || c.tensor != v.Const {
				r.message(n, e.constant(v))
			}
		}
	}
	after := lifted(g)
	for _, c := range after[nil] {
		r.message(n, e.node(c.node, nil, []*ir.Value{c.value}))
	}
	for node := range g.Nodes() {
		r.message(n, e.node(node, node.Inputs(), node.Outputs))
		for _, c := range after[node] {
			r.message(n, e.node(c.node, nil, []*ir.Value{c.value}))
		}
	}
}

// lifted returns the Constant nodes that still exist, by the node that they follow; those
// whose neighbour is gone, or whose graph was sorted, come first.
func lifted(g *ir.Graph) map[*ir.Node][]*constNode {
	after := map[*ir.Node][]*constNode{}
	x, ok := g.Extra.(*graphExtra)
	if !ok {
		return after
	}
	live := map[*ir.Value]bool{}
	for _, v := range g.Consts() {
		live[v] = true
	}
	for _, c := range x.lifted {
		if !live[c.value] || c.value.Const != c.tensor {
			continue
		}
		at := c.after
		if at != nil && at.Graph() == nil || g.Sorted {
			at = nil
		}
		after[at] = append(after[at], c)
	}
	return after
}

func (e *encoder) constant(v *ir.Value) *rope {
	n := &ir.Node{Op: ir.OpID{Type: "Constant"}, Attrs: []*ir.Attr{ir.TensorAttr("value", v.Const)}}
	return e.node(n, nil, []*ir.Value{v})
}

func (e *encoder) node(n *ir.Node, inputs, outputs []*ir.Value) *rope {
	r := &rope{}
	e.extra(r, n.Extra)
	for _, v := range inputs {
		r.text(nodeInput, name(v))
	}
	for _, v := range outputs {
		r.text(nodeOutput, name(v))
	}
	r.optional(nodeName, n.Name)
	r.optional(nodeOp, n.Op.Type)
	for _, a := range n.Attrs {
		r.message(nodeAttribute, e.attr(a))
	}
	r.optional(nodeDomain, n.Op.Domain)
	r.optional(nodeOverload, n.Op.Overload)
	return r
}

func name(v *ir.Value) string {
	if v == nil {
		return ""
	}
	return v.Name
}

// infos writes the value infos of values that no pass removed; one for a name that
// nothing makes is kept as it came. Types that nodes with graphs of their own return follow,
// as inference may not find them (opset.Declare).
func (e *encoder) infos(r *rope, n num, g *ir.Graph) {
	x, ok := g.Extra.(*graphExtra)
	if !ok {
		x = &graphExtra{}
	}
	written := map[*ir.Value]bool{}
	for _, i := range x.infos {
		if !i.value.Removed() {
			e.info(r, n, i.value, i)
			written[i.value] = true
		}
	}
	if g.Function() != nil {
		return
	}
	for _, v := range g.Outputs {
		// The types of outputs are in the outputs of the graph.
		written[v] = true
	}
	for node := range g.Nodes() {
		if !opaque(node) {
			continue
		}
		for _, v := range node.Outputs {
			if v != nil && v.Type != nil && !written[v] {
				e.info(r, n, v, info{})
			}
		}
	}
}

// opaque reports whether a node runs a graph: the body of a function, a branch or an iteration.
func opaque(n *ir.Node) bool {
	for range n.Subgraphs() {
		return true
	}
	return n.Callee() != nil
}

// info writes a ValueInfoProto: as it was read, or encoded again if v's type or name changed.
func (e *encoder) info(r *rope, n num, v *ir.Value, i info) {
	m := &rope{}
	switch same := i.raw != nil && i.typ == v.Type; {
	case same && i.doc > 0 && e.strip:
		m.chunks(i.bare)
		r.message(n, m)
		return
	case same:
		e.metadata += i.doc
		r.chunks(i.raw)
		return
	}
	m.text(infoName, v.Name)
	if v.Type != nil {
		m.message(infoType, typeRope(v.Type))
	}
	r.message(n, m)
}

func typeRope(t *ir.Type) *rope {
	tensor, outer := &rope{}, &rope{}
	tensor.varint(tensorElem, uint64(t.Elem))
	if t.Shape != nil {
		shape := &rope{}
		for _, d := range t.Shape {
			dim := &rope{}
			switch {
			case d.Param != "":
				dim.text(dimParam, d.Param)
			case d.N >= 0:
				dim.varint(dimValue, uint64(d.N))
			}
			shape.message(shapeDim, dim)
		}
		tensor.message(tensorShape, shape)
	}
	outer.message(typeTensor, tensor)
	return outer
}
