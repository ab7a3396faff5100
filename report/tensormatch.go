package report

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A matcher finds the source's weights in a result of unknown history.
type matcher struct {
	consts map[scoped]*ir.Value // of the result
	nodes  map[scoped]*ir.Node  // of the result, by name and by first output
	known  map[scoped]bool      // constants of the source

	expression func(v *ir.Value, as ir.Spec) *ir.Tensor // of Input; may be nil

	// Constants that only the result has, by the constant of the source that their name begins with.
	extensions map[scoped][]*ir.Value
	taken      map[*ir.Value]string // weights that they were matched to
}

// match makes a row for each weight of the source, in file order: by the tensor's
// name, else by the input of the node of the same name or output, and by names
// that begin with the weight's.
func match(ctx context.Context, in Input) ([]pass.Row, error) {
	m := newMatcher(in.Source.IR, in.Result.IR)
	if in.Errors {
		m.expression = in.Expression
	}
	rows := []pass.Row{}
	for g := range in.Source.IR.Graphs() {
		for _, v := range g.Consts() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if pass.IsWeight(v.Const) {
				rows = append(rows, m.row(v))
			}
		}
	}
	return rows, skipIdentical(ctx, in, rows)
}

func newMatcher(source, result *ir.Model) *matcher {
	m := &matcher{
		consts: map[scoped]*ir.Value{},
		nodes:  map[scoped]*ir.Node{},
		known:  map[scoped]bool{},
		taken:  map[*ir.Value]string{},

		extensions: map[scoped][]*ir.Value{},
	}
	for g := range source.Graphs() {
		scope := pass.Scope(g)
		for _, v := range g.Consts() {
			m.known[scoped{scope, v.Name}] = true
		}
	}
	for g := range result.Graphs() {
		scope := pass.Scope(g)
		for _, v := range g.Consts() {
			at := scoped{scope, v.Name}
			m.consts[at] = v
			// Constants of the source have rows of their own.
			if !m.known[at] {
				m.extends(scope, v)
			}
		}
		for n := range g.Nodes() {
			for _, name := range nodeNames(n) {
				m.nodes[scoped{scope, name}] = n
			}
		}
	}
	return m
}

// nodeNames are the keys of a node: its own name and its first output.
func nodeNames(n *ir.Node) []string {
	var names []string
	if n.Name != "" {
		names = append(names, "node "+n.Name)
	}
	if len(n.Outputs) > 0 && n.Outputs[0] != nil {
		names = append(names, "output "+n.Outputs[0].Name)
	}
	return names
}

func (m *matcher) row(v *ir.Value) pass.Row {
	consumers := pass.Consumers(v)
	r := pass.Row{
		Tensor:    v.Name,
		Scope:     pass.Scope(v.Graph()),
		Consumers: pass.Labels(consumers),
		Module:    pass.ModulePath(v, consumers),
		Status:    pass.Changed,
		Before:    v.Const,
		Counted:   true,
	}
	if w := m.consts[scoped{r.Scope, v.Name}]; w != nil {
		r.Form = pass.InPlace
		r.After = []pass.Part{{Role: pass.Payload, Value: w, Tensor: w.Const}}
		if numeric(w.Const.DType) && slices.Equal(w.Const.Shape, v.Const.Shape) {
			r.Restore = pass.Itself
		}
		return r
	}
	// Consumers before names: what a node reads is certain, while a name may begin with that of another weight.
	m.trace(&r, v)
	m.take(&r, m.extensions[scoped{r.Scope, v.Name}])
	if len(r.After) == 0 {
		r.Notes = pass.Notes(pass.Reason{Code: pass.Unmatched})
	}
	return r
}

// trace follows v's consumers into the result, to the constants that replace v.
func (m *matcher) trace(r *pass.Row, v *ir.Value) {
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		for _, name := range nodeNames(u.Node) {
			n := m.nodes[scoped{pass.Scope(u.Node.Graph()), name}]
			if n == nil {
				continue
			}
			s := &subtree{}
			if s.walk(n.Input(u.Index)) {
				m.take(r, s.leaves)
				r.Form = s.form()
				m.restore(r, n.Input(u.Index), s)
			}
			// By the first key that exists: a node is looked up by its output only where its name is not known.
			break
		}
	}
}

// restore makes v, which has the subtree, the weight of the row if it has its shape.
func (m *matcher) restore(r *pass.Row, v *ir.Value, s *subtree) {
	shape, known := opset.Shape(v)
	if m.expression == nil || r.Restore != nil || len(s.nodes) == 0 || !known ||
		!slices.EqualFunc(shape, r.Before.Shape, func(d ir.Dim, n int64) bool { return d.N == n }) {
		return
	}
	spec := ir.Spec{Name: r.Tensor, DType: cmp.Or(opset.Elem(v), r.Before.DType), Shape: r.Before.Shape}
	if t := m.expression(v, spec); t != nil {
		r.Restore = func([]*ir.Tensor) *ir.Tensor { return t }
	}
}

// extends notes the constants of the source that the name of w extends: "w_scale" extends "w".
func (m *matcher) extends(scope string, w *ir.Value) {
	for i := range w.Name {
		if at := (scoped{scope, w.Name[:i]}); strings.ContainsRune("_./:-", rune(w.Name[i])) && m.known[at] {
			m.extensions[at] = append(m.extensions[at], w)
		}
	}
}

// take adds constants to a row. One that another weight's row has is shared.
func (m *matcher) take(r *pass.Row, vs []*ir.Value) {
	for _, w := range vs {
		if slices.ContainsFunc(r.After, func(p pass.Part) bool { return p.Value == w }) {
			continue
		}
		p := pass.Part{Role: role(r.Before, w.Const), Value: w, Tensor: w.Const}
		if by := m.taken[w]; by != "" && by != r.Tensor && p.Role == pass.Payload {
			r.SharedWith = by
		}
		m.taken[w] = r.Tensor
		r.After = append(r.After, p)
	}
}

// role is the role of a constant, by its size and type.
func role(before, t *ir.Tensor) pass.Role {
	switch {
	case t.Elems() == before.Elems():
		return pass.Payload
	// Small integers of 8 bits are zero points.
	case t.DType.IsFloat() || t.Elems() == 1 || len(t.Shape) <= 1 && t.DType.Bits() == 8:
		return pass.Scales
	}
	return pass.Indices
}

// skipIdentical turns rows of byte-identical tensors into skipped ones.
func skipIdentical(ctx context.Context, in Input, rows []pass.Row) error {
	return pass.Parallel(ctx, in.Workers, len(rows), func(ctx context.Context, i int) error {
		r := &rows[i]
		if r.Form != pass.InPlace || !alike(r.Before.Spec, r.After[0].Spec) {
			return nil
		}
		same, err := equal(ctx, in.Eval, r.Before, r.After[0].Tensor)
		if same {
			*r = pass.Row{
				Tensor:    r.Tensor,
				Scope:     r.Scope,
				Consumers: r.Consumers,
				Module:    r.Module,
				Before:    r.Before,
				Counted:   true,
				Status:    pass.Skipped,
				Reason:    pass.Reason{Code: pass.Identical},
			}
		}
		return err
	})
}

// equal compares payloads of one size up to the first difference.
func equal(ctx context.Context, e *ir.Eval, a, b *ir.Tensor) (bool, error) {
	ra, err := e.Open(ctx, a)
	if err != nil {
		return false, err
	}
	rb, err := e.Open(ctx, b)
	if err != nil {
		return false, err
	}
	n := min(ir.CopyBuffer, a.Bytes())
	x, y := make([]byte, n), make([]byte, n)
	for off := int64(0); off < a.Bytes(); off += n {
		k := min(n, a.Bytes()-off)
		if err := ir.ReadFull(ra, x[:k], off); err != nil {
			return false, err
		}
		if err := ir.ReadFull(rb, y[:k], off); err != nil {
			return false, err
		}
		if !bytes.Equal(x[:k], y[:k]) {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}
