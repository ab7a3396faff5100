package grad

import (
	"context"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/ir"
)

// StoreFloat16 stores activations and their gradients of more than minBytes in float16, if the producer and all
// consumers support it (Micikevicius et al., Mixed Precision Training, 2018, arXiv:1710.03740): they compute in
// float32, piece by piece. Activations saturate, gradients overflow to infinity, so that an overflow is detected.
// Parameters, their gradients and statistics are unchanged, and so are the results in except, by name. It is called
// after Recompute, and returns the stored results that it converted.
func (a *Activations) StoreFloat16(ctx context.Context, minBytes int64, except map[string]bool) ([]*ir.Value, error) {
	t := a.Tape
	if err := t.InferResults(ctx); err != nil {
		return nil, err
	}
	h := &float16Storage{graph: t.Graph(), types: t.types, results: t.results, values: map[*ir.Value]bool{}}
	h.choose(minBytes, except, t.Params)
	for n := range h.graph.Nodes() {
		h.convert(n)
	}
	converted := slices.DeleteFunc(a.Stored(), func(v *ir.Value) bool { return !h.values[v] })
	// After Stored, which does not depend on types: later forms and sizes see the values as Float16.
	for v := range h.values {
		if s, ok := t.types[v]; ok {
			s.DType = ir.Float16
			t.types[v] = s
		}
	}
	return converted, nil
}

// float16Storage chooses the values of a training step that are stored in float16, and converts their producers and
// consumers.
type float16Storage struct {
	graph   *ir.Graph
	types   map[*ir.Value]ir.Spec // of the forward graph
	results map[*ir.Value]ir.Spec // of both passes
	values  map[*ir.Value]bool
}

// choose chooses the values to store in float16, without exceptions and gradients of weights. Recomputed values are, if
// the originals are.
func (h *float16Storage) choose(minBytes int64, except map[string]bool, params []*Param) {
	refused := maps.Clone(except)
	if refused == nil {
		refused = map[string]bool{}
	}
	weights := map[*ir.Value]bool{}
	for _, p := range params {
		// Gradients of weights stay float32: updates and sums over micro-batches read them.
		weights[p.Grad] = true
	}
	for n := range h.graph.Nodes() {
		for _, v := range n.Outputs {
			switch {
			case v == nil || weights[v]:
			case h.isSupported(v, minBytes):
				h.values[v] = true
			// Copies that recomputation adds have the name of their original: both are stored alike.
			case h.types[v].Name != "":
				refused[h.types[v].Name] = true
			}
		}
	}
	for v := range h.values {
		if refused[h.types[v].Name] {
			delete(h.values, v)
		}
	}
}

// isSupported reports whether v is large, and its producer and consumers support float16.
func (h *float16Storage) isSupported(v *ir.Value, minBytes int64) bool {
	a, p := h.results[v], v.Producer()
	if a.DType != ir.Float || a.Bytes() <= minBytes {
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

// form returns the float16 form of n for values of this shape. n is nil for graph outputs.
func (h *float16Storage) form(n *ir.Node, shape []int64) (half.Form, bool) {
	if n == nil || n.Outputs[0] == nil || !is(n, "", n.Op.Type) && !is(n, own, n.Op.Type) {
		return half.Form{}, false
	}
	f, ok := half.Of(n.Op.Type)
	y, known := h.results[n.Outputs[0]]
	return f, ok && known && (f.Mixed != "" || f.Fits(shape, y.Shape))
}

// convert replaces n by its float16 form, if any of its inputs or outputs is chosen.
func (h *float16Storage) convert(n *ir.Node) {
	var outputs []int64
	for i, v := range n.Outputs {
		if h.values[v] {
			outputs = append(outputs, int64(i))
		}
	}
	if len(outputs) == 0 && !slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return h.values[v] }) {
		return
	}
	// types has values of the forward graph alone: all other results are gradients, and may overflow.
	_, activation := h.types[n.Outputs[0]]
	for _, a := range half.Attributes(outputs, !activation) {
		n.SetAttr(a)
	}
	if f, _ := half.Of(n.Op.Type); f.Mixed != "" {
		n.Op = ir.OpID{Domain: own, Type: f.Mixed}
		return
	}
	domain := n.Op.Domain
	// The operator is in a domain of its own now: the float32 one that it calls is found by these attributes.
	n.SetAttr(ir.IntAttr("version", h.graph.Opset(domain)))
	if domain == newest {
		domain = ""
	}
	n.SetAttr(ir.StringAttr("domain", domain))
	n.Op = ir.OpID{Domain: half.Domain, Type: n.Op.Type}
}
