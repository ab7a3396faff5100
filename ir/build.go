package ir

// NewModel returns an empty model with a main graph.
func NewModel() *Model {
	m := &Model{}
	m.Graph = &Graph{model: m}
	return m
}

// NewSubgraph returns an empty graph inside outer, held by an attribute of owner.
func NewSubgraph(outer *Graph, owner *Node) *Graph {
	return &Graph{model: outer.model, Outer: outer, Owner: owner}
}

// AddFunction adds an empty function to m.
func (m *Model) AddFunction(id OpID) *Function {
	f := &Function{ID: id}
	f.Body = &Graph{model: m, function: f, Name: id.Type}
	m.Functions = append(m.Functions, f)
	m.callees.Store(nil)
	return f
}

// AddValue adds a value with exactly this name, taken or not, for decoding files.
func (g *Graph) AddValue(name string) *Value {
	if m := g.model; m.names != nil {
		m.names[name]++
	}
	return &Value{Name: name, graph: g}
}

// NewValue adds a value under a name that no other value of the model has: hint
// itself if it is free.
func (g *Graph) NewValue(hint string) *Value {
	return &Value{Name: g.model.freeName(hint), graph: g}
}

// SetConst makes v a constant of its graph, or replaces the payload it has.
func (v *Value) SetConst(t *Tensor) {
	if v.Const == nil {
		// Through Consts, which first removes the values that are no constants any more: this one may be among them.
		v.graph.consts = append(v.graph.Consts(), v)
	}
	v.Const = t
}

// AddConst adds a constant under a free name like hint.
func (g *Graph) AddConst(hint string, t *Tensor) *Value {
	v := g.NewValue(hint)
	v.SetConst(t)
	dims := make([]Dim, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = Dim{N: d}
	}
	v.Type = &Type{Elem: t.DType, Shape: dims}
	return v
}

// NewNode returns a node of g that is not in its list yet; place it by Append or
// InsertBefore. Its outputs are set by SetOutputs.
func (g *Graph) NewNode(op OpID, inputs []*Value, attrs ...*Attr) *Node {
	n := &Node{Op: op, Attrs: attrs}
	g.Adopt(n, inputs)
	return n
}

// Adopt makes n, which is in no graph, a node of g with these inputs, as NewNode does, for decoding files.
func (g *Graph) Adopt(n *Node, inputs []*Value) {
	n.graph, n.inputs = g, make([]*Value, len(inputs))
	for i, v := range inputs {
		n.SetInput(i, v)
	}
}

// SetOutputs makes n the producer of vs.
func (n *Node) SetOutputs(vs ...*Value) {
	n.Outputs = vs
	for _, v := range vs {
		if v != nil {
			v.producer = n
		}
	}
}

// Append puts n at the end of its graph.
func (g *Graph) Append(n *Node) {
	n.prev, n.next = g.last, nil
	if g.last == nil {
		g.first = n
	} else {
		g.last.next = n
	}
	g.last = n
}

// InsertBefore inserts n before at. A node without a module is part of that of at.
func (g *Graph) InsertBefore(at, n *Node) {
	if n.Module == "" {
		n.Module = at.Module
	}
	n.prev, n.next = at.prev, at
	if at.prev == nil {
		g.first = n
	} else {
		at.prev.next = n
	}
	at.prev = n
}

// Insert adds a node of the default domain with one output before at, or at
// the end where at is nil, and returns that output. Generated names are short, as
// every use of one is stored.
func (g *Graph) Insert(at *Node, op string, inputs []*Value, attrs ...*Attr) *Value {
	return g.InsertN(at, op, 1, inputs, attrs...)[0]
}

// InsertN is Insert for a node of several outputs.
func (g *Graph) InsertN(at *Node, op string, outputs int, inputs []*Value, attrs ...*Attr) []*Value {
	n := g.NewNode(OpID{Type: op}, inputs, attrs...)
	vs := make([]*Value, outputs)
	for i := range vs {
		vs[i] = g.NewValue("t")
	}
	n.SetOutputs(vs...)
	if at == nil {
		g.Append(n)
	} else {
		g.InsertBefore(at, n)
	}
	return vs
}

// IntAttr returns an attribute that holds an integer.
func IntAttr(name string, i int64) *Attr { return &Attr{Name: name, Type: AttrInt, I: i} }

// IntsAttr returns an attribute that holds a list of integers.
func IntsAttr(name string, is ...int64) *Attr { return &Attr{Name: name, Type: AttrInts, Ints: is} }

// FloatAttr returns an attribute that holds a float.
func FloatAttr(name string, f float32) *Attr { return &Attr{Name: name, Type: AttrFloat, F: f} }

// StringAttr returns an attribute that holds a string.
func StringAttr(name, s string) *Attr { return &Attr{Name: name, Type: AttrString, S: s} }

// TensorAttr returns an attribute that holds a tensor.
func TensorAttr(name string, t *Tensor) *Attr { return &Attr{Name: name, Type: AttrTensor, Tensor: t} }

// SetAttr replaces n's attribute of a's name, or adds it.
func (n *Node) SetAttr(a *Attr) {
	for i, old := range n.Attrs {
		if old.Name == a.Name {
			n.Attrs[i] = a
			return
		}
	}
	n.Attrs = append(n.Attrs, a)
}

// RemoveAttr removes n's attribute of that name if there is one.
func (n *Node) RemoveAttr(name string) {
	for i, a := range n.Attrs {
		if a.Name == name {
			n.Attrs = append(n.Attrs[:i:i], n.Attrs[i+1:]...)
			return
		}
	}
}
