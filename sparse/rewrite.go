package sparse

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A rewriter puts forms in the place of constants.
type rewriter struct {
	step         *pass.Step
	front        map[*ir.Graph]*ir.Node // each graph's first node before any form was added
	replacements map[*ir.Value]replacement
}

// A replacement is a form that replaces a constant.
type replacement struct {
	dense *ir.Value
	row   pass.Row
}

func newRewriter(s *pass.Step) *rewriter {
	return &rewriter{s, map[*ir.Graph]*ir.Node{}, map[*ir.Value]replacement{}}
}

// rewriteAll rewrites vs by the choices for the first of each set of equal ones.
func (r *rewriter) rewriteAll(vs []*ir.Value, first map[*ir.Value]*ir.Value, choices map[*ir.Value]choice) {
	for _, v := range vs {
		ch := choices[first[v]]
		if ch.layout == nil {
			r.step.Ledger.Skip(v, pass.Consumers(v), pass.Reason{Code: pass.NoSparseForm, Detail: ch.sizes})
			continue
		}
		// The first of equal weights comes before the others, so that its form is there when they replace theirs.
		if first[v] == v {
			r.replacements[v] = r.form(v, ch)
		}
		r.replace(v, first[v])
	}
}

// form adds v's form to its graph, before all consumers.
func (r *rewriter) form(v *ir.Value, ch choice) replacement {
	g := v.Graph()
	if _, known := r.front[g]; !known {
		r.front[g] = firstNode(g)
	}
	b := &builder{g: g, at: r.front[g], konst: r.step.Const, values: map[*ir.Tensor]*ir.Value{}}
	parts := payloads(ch.layout, v.Const)
	dense := ch.build(b, parts)
	row := pass.Row{Form: ch.form(), Notes: pass.Notes(pass.Reason{Code: pass.SparseForm, Detail: ch.sizes}),
		Restore: restore(ch.layout, v.Name)}
	// Zero: every form restores the weight bit by bit, but for the sign of zeros.
	row.Bound = pass.ExactBound(v.Const, row.Restore)
	for i, p := range ch.parts() {
		row.After = append(row.After, pass.Part{Role: p.role, Value: b.values[parts[i]], Tensor: parts[i]})
	}
	return replacement{dense, row}
}

func firstNode(g *ir.Graph) *ir.Node {
	for n := range g.Nodes() {
		return n
	}
	return nil
}

// replace makes v's consumers read the form that replaces it, which takes over the
// name of the first.
func (r *rewriter) replace(v, first *ir.Value) {
	m := r.replacements[first]
	before, consumers, row := v.Const, pass.Consumers(v), m.row
	if v != first {
		row.SharedWith = first.Name
	}
	if v.IsInput() {
		// A caller could override a weight that is an input, too; a computed value it cannot.
		v.Graph().RemoveInput(v)
		row.Notes = append(row.Notes, pass.Reason{Code: pass.WasInput})
	}
	v.ReplaceUses(m.dense)
	v.Drop()
	// After v has lost its name: the graph never has two values of one name.
	if v == first {
		m.dense.Name, m.dense.Type = v.Name, typeOf(before.Spec)
	}
	r.step.Ledger.Changed(v, before, consumers, row)
}

func typeOf(s ir.Spec) *ir.Type {
	t := &ir.Type{Elem: s.DType, Shape: []ir.Dim{}}
	for _, d := range s.Shape {
		t.Shape = append(t.Shape, ir.Dim{N: d})
	}
	return t
}
