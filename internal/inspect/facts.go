package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// Facts are the contents of a model. Their fields are in the order of the JSON form. All
// sizes are bytes.
type Facts struct {
	Files     []File     `json:"files"`
	IRVersion int64      `json:"ir_version"`
	Opsets    []Opset    `json:"opsets"`
	Functions []string   `json:"functions"`
	Inputs    []Port     `json:"inputs"` // constants among them left out
	Outputs   []Port     `json:"outputs"`
	Operators []Operator `json:"operators"`
	DTypes    []DType    `json:"dtypes"`
	Tensors   []Tensor   `json:"tensors"`
	Meta      []Entry    `json:"metadata"`
}

// A File is one file of the model, named relative to the model's folder.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// An Opset is one operator set that the model imports.
type Opset struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
}

// A Port is an input or output of the main graph; its type is in ONNX's text syntax, ""
// where it is not declared.
type Port struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// An Operator counts the nodes of one type in all graphs and functions, and the bytes
// of their constants.
type Operator struct {
	Op    string `json:"op"`
	Nodes int    `json:"nodes"`
	Bytes int64  `json:"constant_bytes"`
}

// A DType is the constants of one element type.
type DType struct {
	DType   string `json:"dtype"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// A Tensor is one initializer or Constant node.
type Tensor struct {
	Name        string   `json:"name"`
	Scope       string   `json:"scope"` // its subgraph or function
	DType       string   `json:"dtype"`
	Shape       []int64  `json:"shape"`
	Bytes       int64    `json:"bytes"`
	Consumers   []string `json:"consumers"`              // operator and node name, through Transpose, Reshape and other views
	Module      string   `json:"module,omitempty"`       // path of the module that it is part of
	DuplicateOf string   `json:"duplicate_of,omitempty"` // an earlier tensor of the same scope, type, shape and bytes
	Sparsity    *float64 `json:"sparsity,omitempty"`     // fraction of elements whose bits are all zero
}

// An Entry is one of metadata_props.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Options select the payloads to read.
type Options struct {
	Workers int
	Values  bool // read all payloads and count zeros
}

// Model collects the facts about f. Without Values it reads payloads only of tensors that
// share type and shape, and of those 64 KiB unless they seem equal.
func Model(ctx context.Context, f *onnx.File, o Options) (*Facts, error) {
	m := f.Model
	facts := &Facts{IRVersion: m.IRVersion, Opsets: []Opset{}, Functions: []string{}, Meta: []Entry{}}
	for _, p := range f.Parts() {
		facts.Files = append(facts.Files, File{p.Name, p.Size})
	}
	for _, s := range m.Opsets {
		facts.Opsets = append(facts.Opsets, Opset{s.Domain, s.Version})
	}
	for _, fn := range m.Functions {
		facts.Functions = append(facts.Functions, fn.ID.String())
	}
	for _, e := range m.Meta {
		facts.Meta = append(facts.Meta, Entry{e.Key, e.Value})
	}
	facts.Inputs, facts.Outputs = ports(m.Graph.Inputs), ports(m.Graph.Outputs)
	facts.Operators = operators(m)
	return facts, facts.tensors(ctx, m, o)
}

func ports(vs []*ir.Value) []Port {
	ps := []Port{}
	for _, v := range vs {
		if v != nil && v.Const == nil {
			ps = append(ps, Port{v.Name, typeText(v.Type)})
		}
	}
	return ps
}

// typeText is t in ONNX's text syntax, with ? for unknown axes.
func typeText(t *ir.Type) string {
	if t == nil {
		return ""
	}
	if t.Shape == nil {
		return t.Elem.String()
	}
	dims := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = dim(d)
	}
	return t.Elem.String() + "[" + strings.Join(dims, ",") + "]"
}

// operators are sorted by the bytes of their constants, then by count and name.
func operators(m *ir.Model) []Operator {
	at := map[string]int{}
	list := []Operator{}
	read := map[string]map[*ir.Value]bool{}
	for n := range m.Nodes() {
		op := n.Op.String()
		i, known := at[op]
		if !known {
			i = len(list)
			at[op], read[op] = i, map[*ir.Value]bool{}
			list = append(list, Operator{Op: op})
		}
		list[i].Nodes++
		for _, v := range n.Inputs() {
			if v != nil && v.Const != nil && !read[op][v] {
				read[op][v] = true
				list[i].Bytes += v.Const.Bytes()
			}
		}
	}
	slices.SortFunc(list, func(a, b Operator) int { return larger(b, a) })
	return list
}

// consts are all constants, graph by graph.
func consts(m *ir.Model) []*ir.Value {
	var vs []*ir.Value
	for g := range m.Graphs() {
		vs = append(vs, g.Consts()...)
	}
	return vs
}

func (f *Facts) tensors(ctx context.Context, m *ir.Model, o Options) error {
	s := &pass.Step{Model: m, Eval: ir.NewEval(""), Env: pass.Environment{Workers: o.Workers}}
	defer s.Eval.Close() // nothing is written that could be lost
	vs := consts(m)
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, readable(vs))
	if err != nil {
		return err
	}
	f.Tensors = make([]Tensor, len(vs))
	for i, v := range vs {
		f.Tensors[i] = tensor(v)
		if w := first[v]; w != nil && w != v {
			f.Tensors[i].DuplicateOf = w.Name
		}
	}
	f.DTypes = dtypes(vs)
	if !o.Values {
		return nil
	}
	return pass.Parallel(ctx, s.Env.Workers, len(vs), func(ctx context.Context, i int) error {
		var err error
		f.Tensors[i].Sparsity, err = sparsity(ctx, s.Eval, vs[i].Const)
		return err
	})
}

// readable leaves out strings, whose payload has no fixed size, and empty tensors.
func readable(vs []*ir.Value) []*ir.Value {
	return slices.DeleteFunc(slices.Clone(vs), func(v *ir.Value) bool { return v.Const.Bytes() == 0 })
}

func tensor(v *ir.Value) Tensor {
	consumers := pass.Consumers(v)
	return Tensor{
		Name: v.Name, Scope: pass.Scope(v.Graph()), DType: v.Const.DType.String(),
		Shape: append([]int64{}, v.Const.Shape...), Bytes: v.Const.Bytes(), Consumers: pass.Labels(consumers), Module: pass.ModulePath(v, consumers),
	}
}

// dtypes are in the order of ONNX's enum.
func dtypes(vs []*ir.Value) []DType {
	by := map[ir.DType]*DType{}
	var order []ir.DType
	for _, v := range vs {
		d := v.Const.DType
		if by[d] == nil {
			by[d] = &DType{DType: d.String()}
			order = append(order, d)
		}
		by[d].Tensors++
		by[d].Bytes += v.Const.Bytes()
	}
	slices.Sort(order)
	list := make([]DType, len(order))
	for i, d := range order {
		list[i] = *by[d]
	}
	return list
}
