package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/inspection"
)

// Options select the payloads to read.
type Options struct {
	Workers int
	Values  bool // read all payloads and count zeros
}

// Model collects the facts about f. Without Values it reads payloads only of tensors that
// share type and shape, and of those 64 KiB unless they seem equal.
func Model(ctx context.Context, f *onnx.File, o Options) (*inspection.Model, error) {
	m := f.Model
	facts := &inspection.Model{IRVersion: m.IRVersion, Opsets: []inspection.Opset{}, Functions: []string{}, Meta: []inspection.Entry{}}
	for _, p := range f.Parts() {
		facts.Files = append(facts.Files, inspection.File{Name: p.Name, Bytes: p.Size})
	}
	for _, s := range m.Opsets {
		facts.Opsets = append(facts.Opsets, inspection.Opset{Domain: s.Domain, Version: s.Version})
	}
	for _, fn := range m.Functions {
		facts.Functions = append(facts.Functions, fn.ID.String())
	}
	for _, e := range m.Meta {
		facts.Meta = append(facts.Meta, inspection.Entry{Key: e.Key, Value: e.Value})
	}
	facts.Inputs, facts.Outputs = ports(m.Graph.Inputs), ports(m.Graph.Outputs)
	facts.Operators = operators(m)
	var err error
	if facts.Runtimes, err = runtimes(ctx, m); err != nil {
		return nil, err
	}
	return facts, tensors(ctx, facts, m, o)
}

func ports(vs []*ir.Value) []inspection.Port {
	ps := []inspection.Port{}
	for _, v := range vs {
		if v != nil && v.Const == nil {
			ps = append(ps, inspection.Port{Name: v.Name, Type: typeText(v.Type)})
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
func operators(m *ir.Model) []inspection.Operator {
	at := map[string]int{}
	list := []inspection.Operator{}
	read := map[string]map[*ir.Value]bool{}
	for n := range m.Nodes() {
		op := n.Op.String()
		i, known := at[op]
		if !known {
			i = len(list)
			at[op], read[op] = i, map[*ir.Value]bool{}
			list = append(list, inspection.Operator{Op: op})
		}
		list[i].Nodes++
		for _, v := range n.Inputs() {
			if v != nil && v.Const != nil && !read[op][v] {
				read[op][v] = true
				list[i].Bytes += v.Const.Bytes()
			}
		}
	}
	slices.SortFunc(list, func(a, b inspection.Operator) int { return larger(b, a) })
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

func tensors(ctx context.Context, f *inspection.Model, m *ir.Model, o Options) error {
	s := &pass.Step{Model: m, Eval: ir.NewEval(""), Env: pass.Environment{Workers: o.Workers}}
	defer s.Eval.Close() // nothing is written that could be lost
	vs := consts(m)
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, readable(vs))
	if err != nil {
		return err
	}
	f.Tensors = make([]inspection.Tensor, len(vs))
	for i, v := range vs {
		if err := ctx.Err(); err != nil {
			return err
		}
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

func tensor(v *ir.Value) inspection.Tensor {
	consumers := pass.Consumers(v)
	return inspection.Tensor{
		Name: v.Name, Scope: pass.Scope(v.Graph()), DType: v.Const.DType.String(),
		Shape: append([]int64{}, v.Const.Shape...), Bytes: v.Const.Bytes(), Consumers: pass.Labels(consumers), Module: pass.ModulePath(v, consumers),
	}
}

// dtypes are in the order of ONNX's enum.
func dtypes(vs []*ir.Value) []inspection.DType {
	by := map[ir.DType]*inspection.DType{}
	var order []ir.DType
	for _, v := range vs {
		d := v.Const.DType
		if by[d] == nil {
			by[d] = &inspection.DType{DType: d.String()}
			order = append(order, d)
		}
		by[d].Tensors++
		by[d].Bytes += v.Const.Bytes()
	}
	slices.Sort(order)
	list := make([]inspection.DType, len(order))
	for i, d := range order {
		list[i] = *by[d]
	}
	return list
}
