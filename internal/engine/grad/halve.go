package grad

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/ir"
)

// Halve keeps activations and their gradients of more than some bytes in Float16, where the operator that makes one and all that read it
// take that (Micikevicius et al., Mixed Precision Training, 2018, arXiv:1710.03740): they compute in float32, piece by piece. Activations
// that are too large become the largest number, gradients infinite, so that an overflow shows. Parameters, their gradients and statistics
// stay as they are. It is called behind Backward and Recompute.
func (t *Tape) Halve(ctx context.Context, least int64) error {
	t.splitGradients()
	specs := map[string]ir.Spec{}
	for _, v := range t.Graph().Inputs {
		specs[v.Name] = fixed(v)
	}
	types, err := known(ctx, t.Model, specs)
	if err != nil {
		return err
	}
	h := &halving{Tape: t, all: types}
	taken := h.values(least)
	for n := range t.Graph().Nodes() {
		h.node(n, taken)
	}
	for v := range taken {
		if s, ok := t.types[v]; ok {
			s.DType = ir.Float16
			t.types[v] = s
		}
	}
	return nil
}

// splitGradients makes two nodes of each convolution's gradient: that of the input does not read the input, and that of the weights does not
// write it, so that each holds one tensor less in float32 at a time.
func (t *Tape) splitGradients() {
	wanted := map[*ir.Value]bool{}
	for _, p := range t.Params {
		wanted[p.Grad] = true
	}
	for _, n := range slices.Collect(t.Graph().Nodes()) {
		weights := slices.ContainsFunc(n.Outputs[1:], func(v *ir.Value) bool { return v != nil && (wanted[v] || read(v)) })
		if !is(n, own, "ConvGrad", "ConvTransposeGrad") || !read(n.Outputs[0]) || !weights {
			continue
		}
		dx := t.Graph().NewNode(n.Op, n.Inputs(), n.Attrs...)
		outputs := slices.Clone(n.Outputs)
		unread := t.Graph().NewValue("g")
		n.SetOutputs(append([]*ir.Value{unread}, outputs[1:]...)...)
		dx.SetOutputs(outputs[0], t.Graph().NewValue("g"), t.Graph().NewValue("g"))
		t.Graph().InsertBefore(n, dx)
	}
}

type halving struct {
	*Tape
	all map[string]*ir.Array // types by name
}

// values are those that become Float16. What is computed again does if its first form does.
func (h *halving) values(least int64) map[*ir.Value]bool {
	taken, refused := map[*ir.Value]bool{}, map[string]bool{}
	for n := range h.Graph().Nodes() {
		for _, v := range n.Outputs {
			switch {
			case v == nil:
			case h.fits(v, least):
				taken[v] = true
			case h.types[v].Name != "":
				refused[h.types[v].Name] = true
			}
		}
	}
	for v := range taken {
		if refused[h.types[v].Name] {
			delete(taken, v)
		}
	}
	return taken
}

// fits reports whether v is large, and may be Float16 wherever it stands.
func (h *halving) fits(v *ir.Value, least int64) bool {
	a, p := h.all[v.Name], v.Producer()
	if a == nil || a.DType != ir.Float || a.Bytes() <= least {
		return false
	}
	if f, ok := h.form(p, a.Shape); !ok || !slices.Contains(f.Out, slices.Index(p.Outputs, v)) {
		return false
	}
	return !slices.ContainsFunc(v.Uses(), func(u ir.Use) bool {
		f, ok := h.form(u.Node, a.Shape)
		return !ok || !slices.Contains(f.In, u.Index)
	})
}

// form is that of n, which is nil for graph outputs, if it takes halves of this shape.
func (h *halving) form(n *ir.Node, shape []int64) (half.Form, bool) {
	if n == nil || n.Outputs[0] == nil || !is(n, "", n.Op.Type) && !is(n, own, n.Op.Type) {
		return half.Form{}, false
	}
	f, ok := half.Of(n.Op.Type)
	y := h.all[n.Outputs[0].Name]
	return f, ok && y != nil && f.Fits(shape, y.Shape)
}

// node makes n what takes and gives halves, if any of its inputs or outputs is one.
func (h *halving) node(n *ir.Node, taken map[*ir.Value]bool) {
	var outputs []int64
	for i, v := range n.Outputs {
		if taken[v] {
			outputs = append(outputs, int64(i))
		}
	}
	if len(outputs) == 0 && !slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return taken[v] }) {
		return
	}
	_, activation := h.types[n.Outputs[0]]
	for _, a := range half.Attributes(outputs, !activation) {
		n.SetAttr(a)
	}
	if f, _ := half.Of(n.Op.Type); f.Itself {
		return
	}
	domain := n.Op.Domain
	n.SetAttr(ir.IntAttr("version", h.Graph().Opset(domain)))
	if domain == newest {
		domain = ""
	}
	n.SetAttr(ir.StringAttr("domain", domain))
	n.Op = ir.OpID{Domain: half.Domain, Type: n.Op.Type}
}
