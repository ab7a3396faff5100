package ir

import (
	"strconv"
	"strings"
)

// attrTypes are the names of attribute types in the syntax. Those without a constant
// only ride along.
var attrTypes = map[AttrType]string{
	AttrFloat: "float", AttrInt: "int", AttrString: "string", AttrTensor: "tensor", AttrGraph: "graph",
	AttrFloats: "floats", AttrInts: "ints", AttrStrings: "strings", AttrTensors: "tensors", AttrGraphs: "graphs",
	AttrSparse: "sparse_tensor", 12: "sparse_tensors", 13: "type_proto", 14: "type_protos",
}

func (p *printer) attrs(n *Node) {
	if len(n.Attrs) == 0 {
		return
	}
	p.list(" <", ">", len(n.Attrs), func(i int) { p.attr(n.Attrs[i]) })
}

// attr writes the type only where the value does not show it.
func (p *printer) attr(a *Attr) {
	typ := a.kind()
	p.put(word(a.Name))
	switch {
	case a.Ref != "":
		p.typed(typ, "@"+word(a.Ref))
	case a.absent(typ):
		p.typed(typ, "@elided")
	case a.len(typ) == 0:
		p.typed(typ, "[]")
	default:
		p.put(" = ")
		p.attrValue(a, typ)
	}
}

func (p *printer) typed(typ AttrType, value string) {
	if name := attrTypes[typ]; name != "" {
		p.put(": ", name)
	}
	p.put(" = ", value)
}

// kind is a's type, derived from the fields that are set where an old file has none.
func (a *Attr) kind() AttrType {
	switch {
	case a.Type != 0:
		return a.Type
	case a.Tensor != nil:
		return AttrTensor
	case a.Graph != nil:
		return AttrGraph
	case a.Ints != nil:
		return AttrInts
	case a.Floats != nil:
		return AttrFloats
	case a.Strings != nil:
		return AttrStrings
	case a.S != "":
		return AttrString
	case a.F != 0:
		return AttrFloat
	}
	return AttrInt
}

// absent reports a value that a does not hold, or that the syntax has no form for.
func (a *Attr) absent(typ AttrType) bool {
	switch typ {
	case AttrTensor:
		return a.Tensor == nil
	case AttrGraph:
		return a.Graph == nil
	}
	return a.Elided || typ >= AttrSparse
}

// len is the number of values in a list, 1 for what is none.
func (a *Attr) len(typ AttrType) int {
	switch typ {
	case AttrFloats:
		return len(a.Floats)
	case AttrInts:
		return len(a.Ints)
	case AttrStrings:
		return len(a.Strings)
	case AttrTensors:
		return len(a.Tensors)
	case AttrGraphs:
		return len(a.Graphs)
	}
	return 1
}

func (p *printer) attrValue(a *Attr, typ AttrType) {
	list := func(do func(i int)) { p.list("[", "]", a.len(typ), do) }
	switch typ {
	case AttrFloat:
		p.put(attrFloat(a.F))
	case AttrInt:
		p.put(strconv.FormatInt(a.I, 10))
	case AttrString:
		p.put(quoted(a.S))
	case AttrTensor:
		p.tensor(a.Tensor, a.Tensor.Name)
	case AttrGraph:
		p.block(func() { p.graph(a.Graph) })
	case AttrFloats:
		list(func(i int) { p.put(attrFloat(a.Floats[i])) })
	case AttrInts:
		list(func(i int) { p.put(strconv.FormatInt(a.Ints[i], 10)) })
	case AttrStrings:
		list(func(i int) { p.put(quoted(a.Strings[i])) })
	case AttrTensors:
		list(func(i int) { p.tensor(a.Tensors[i], a.Tensors[i].Name) })
	case AttrGraphs:
		p.block(func() { list(func(i int) { p.graph(a.Graphs[i]) }) })
	}
}

// attrFloat always shows that the number is no integer.
func attrFloat(f float32) string {
	s := textFloat(float64(f), 32)
	if strings.Trim(s, "-0123456789") == "" {
		s += ".0"
	}
	return s
}
