package modelgen

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Model is an ONNX model as plain data, with the inputs of one run.
type Model struct {
	IR        int64
	Opset     int64 // of ai.onnx
	Contrib   bool  // imports com.microsoft
	Graph     *Graph
	Functions []*Function
	Inputs    []*Tensor // one for each input of the graph, in order

	Traits []string // what the generator chose, for statistics

	types         map[string]val // of values of the main graph
	ordinary      bool
	discontinuous bool
}

// A Graph is a graph or the body of a node.
type Graph struct {
	Name            string
	Inputs, Outputs []Value
	Infos           []Value // types of values between nodes
	Constants       []*Tensor
	Nodes           []*Node
}

// A Value is a name with its type. A nil shape is an unknown rank.
type Value struct {
	Name  string
	Type  ir.DType
	Shape []ir.Dim
}

// A Node is one operator.
type Node struct {
	Name, Domain, Op string
	In, Out          []string // empty names are absent values
	Attrs            []Attr
}

// An Attr is an attribute: int64, float32, string, []int64, *Tensor or *Graph.
type Attr struct {
	Name  string
	Value any
}

// A Function is a model-local function of domain "local".
type Function struct {
	Name    string
	In, Out []string
	Nodes   []*Node
}

// A Field is where a tensor stores its elements.
type Field uint8

// The fields.
const (
	Raw      Field = iota // raw_data
	Typed                 // float_data, int32_data, int64_data, double_data or uint64_data
	External              // a file
	Sparse                // sparse_initializer with linear indices
	SparseN               // sparse_initializer with one index for each axis
	fields
)

// A Tensor is a constant. Data are the bytes of raw_data, little-endian, types below 8 bits packed.
type Tensor struct {
	Name  string
	Type  ir.DType
	Shape []int64
	Data  []byte
	Field Field
	File  int  // of External: the number of the file
	Input bool // it is also an input of the graph, whose value callers may replace

	Parameter bool // scales or zero points of another constant
}

func (t *Tensor) elems() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Clone is a copy that shares the data of tensors.
func (m *Model) Clone() *Model {
	c := *m
	c.Graph = m.Graph.clone()
	c.Functions = slices.Clone(m.Functions)
	for i, f := range c.Functions {
		g := *f
		g.Nodes = cloneNodes(f.Nodes)
		c.Functions[i] = &g
	}
	c.Inputs = cloneTensors(m.Inputs)
	return &c
}

func (g *Graph) clone() *Graph {
	c := *g
	c.Inputs, c.Outputs, c.Infos = slices.Clone(g.Inputs), slices.Clone(g.Outputs), slices.Clone(g.Infos)
	c.Constants, c.Nodes = cloneTensors(g.Constants), cloneNodes(g.Nodes)
	return &c
}

func cloneTensors(ts []*Tensor) []*Tensor {
	c := slices.Clone(ts)
	for i, t := range c {
		u := *t
		c[i] = &u
	}
	return c
}

func cloneNodes(ns []*Node) []*Node {
	c := slices.Clone(ns)
	for i, n := range c {
		d := *n
		d.In, d.Out, d.Attrs = slices.Clone(n.In), slices.Clone(n.Out), slices.Clone(n.Attrs)
		for j, a := range d.Attrs {
			switch v := a.Value.(type) {
			case *Graph:
				d.Attrs[j].Value = v.clone()
			case *Tensor:
				t := *v
				d.Attrs[j].Value = &t
			}
		}
		c[i] = &d
	}
	return c
}

// graphs calls f with the main graph and those of nodes, outer ones first.
func (m *Model) graphs(f func(*Graph)) {
	var visit func(nodes []*Node)
	visit = func(nodes []*Node) {
		for _, n := range nodes {
			for _, a := range n.Attrs {
				if g, ok := a.Value.(*Graph); ok {
					f(g)
					visit(g.Nodes)
				}
			}
		}
	}
	f(m.Graph)
	visit(m.Graph.Nodes)
	for _, fn := range m.Functions {
		visit(fn.Nodes)
	}
}

// Constants are the names of the constants with axes, those of bodies and functions included: scalars are no weights,
// nor are the parameters of quantized weights.
func (m *Model) Constants() []string {
	var names []string
	add := func(t *Tensor) {
		if len(t.Shape) > 0 && !t.Parameter {
			names = append(names, t.Name)
		}
	}
	nodes := func(list []*Node) {
		for _, n := range list {
			for _, a := range n.Attrs {
				if t, ok := a.Value.(*Tensor); ok && n.Op == "Constant" {
					add(&Tensor{Name: n.Out[0], Shape: t.Shape, Parameter: t.Parameter})
				}
			}
		}
	}
	m.graphs(func(g *Graph) {
		for _, t := range g.Constants {
			add(t)
		}
		nodes(g.Nodes)
	})
	for _, f := range m.Functions {
		nodes(f.Nodes)
	}
	return names
}

// Operators are the names of the operators of all nodes, those of bodies and functions included.
func (m *Model) Operators() []string {
	var names []string
	nodes := func(list []*Node) {
		for _, n := range list {
			if name := n.Op; n.Domain == "" || n.Domain == contributed {
				if n.Domain != "" {
					name = n.Domain + "." + name
				}
				names = append(names, name)
			}
		}
	}
	m.graphs(func(g *Graph) { nodes(g.Nodes) })
	for _, f := range m.Functions {
		nodes(f.Nodes)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// External reports whether a constant is in a file of its own.
func (m *Model) External() bool {
	found := false
	m.graphs(func(g *Graph) {
		for _, t := range g.Constants {
			found = found || t.Field == External
		}
	})
	return found
}

// Sparse reports whether a constant of a graph is sparse: strict shape inference takes its type for one that no
// operator accepts.
func (m *Model) Sparse() bool {
	found := false
	m.graphs(func(g *Graph) {
		for _, t := range g.Constants {
			found = found || t.Field >= Sparse
		}
	})
	return found
}

// Ordinary reports whether the model is one layer with weights of normal numbers: its output has about the error of
// these.
func (m *Model) Ordinary() bool { return m.ordinary }

// OpenSizes reports whether an axis of an input has a name instead of a size. Constants are chosen for the size in
// Inputs: with others, such as 1, the model need not run.
func (m *Model) OpenSizes() bool {
	return slices.ContainsFunc(m.Graph.Inputs, func(v Value) bool {
		return slices.ContainsFunc(v.Shape,
			func(d ir.Dim) bool { return d.Param != "" })
	})
}

// Discontinuous reports whether small errors of a value may have large effects: comparisons, rounding, selections.
// Figures of two runtimes, whose sums differ in the last bits, are then not comparable.
func (m *Model) Discontinuous() bool { return m.discontinuous }

// Finite reports whether all weights are finite.
func (m *Model) Finite() bool { return !slices.Contains(m.Traits, "values: not finite") }
