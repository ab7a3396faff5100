package prune

import (
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A weight is a constant that one or more operators read as their weight.
type weight struct {
	v         *ir.Value
	before    *ir.Tensor
	consumers []*ir.Node // the operators themselves, after Transpose, Cast and the like
	uses      []pass.Consumer
	layouts   []layout    // one for each use
	unknown   pass.Reason // why some layout is not known; elementwise methods need none
	table     *ir.Node    // a consumer that looks rows up
}

// weights returns the selected weights in file order. Every other constant that their operators read, such as a bias,
// gets its ledger row here.
func weights(s *pass.Step, embeddings bool) []*weight {
	return weightsAnd(s, embeddings, nil)
}

// weightsAndBiases are weights, with biases if they are pruned too.
func weightsAndBiases(s *pass.Step, embeddings, biases bool) []*weight {
	if !biases {
		return weights(s, embeddings)
	}
	return weightsAnd(s, embeddings, biasesOf(s.Model))
}

func weightsAnd(s *pass.Step, embeddings bool, more []*weight) []*weight {
	found := map[*ir.Value]*weight{}
	for _, w := range more {
		found[w.v] = w
	}
	for _, w := range pass.UsedWeights(s.Model, isPrunable) {
		found[w.Value] = newWeight(w)
	}
	var selected []*weight
	for _, v := range pass.Weights(s.Model) {
		w := found[v]
		if w == nil {
			continue
		}
		if reason := w.exclusion(s, embeddings); !reason.None() {
			s.Ledger.Skip(v, w.consumers, reason)
			continue
		}
		selected = append(selected, w)
	}
	skipOthers(s, found)
	return selected
}

// Weights returns the selected weights that unstructured methods prune, in file order, and adds the ledger rows of the
// other constants that their operators read. Embeddings include tables that Gather looks up.
func Weights(s *pass.Step, embeddings bool) []*ir.Value {
	var vs []*ir.Value
	for _, w := range weights(s, embeddings) {
		vs = append(vs, w.v)
	}
	return vs
}

// isPrunable are the uses whose weights are pruned: those by ONNX's own operators. Biases, and gains and shifts of
// normalizations, are few and stay; a vector that Gather reads is no embedding.
func isPrunable(u pass.Consumer) bool {
	return ir.DefaultDomain(u.Node.Op.Domain) && (u.Input.Role != operator.Table || len(u.Operand.Shape) > 1)
}

func newWeight(used *pass.Weight) *weight {
	w := &weight{v: used.Value, before: used.Value.Const, consumers: used.Nodes(), uses: used.Consumers}
	for _, u := range used.Consumers {
		if u.Input.Role == operator.Table {
			w.table = u.Node
		}
		l, reason := layoutOf(u)
		if !reason.None() {
			w.unknown = reason
			continue
		}
		w.layouts = append(w.layouts, l)
	}
	return w
}

// exclusion is the reason why w is not pruned.
func (w *weight) exclusion(s *pass.Step, embeddings bool) pass.Reason {
	if s.Select.Excludes(w.v, w.consumers) {
		return pass.Reason{Code: pass.NotSelected}
	}
	switch {
	case w.before.Elems() == 0:
		return pass.Reason{Code: pass.Shape, Detail: "no elements"}
	case w.table != nil && !embeddings:
		return pass.Reason{Code: pass.Embedding}.At(w.table)
	case pass.StoredSmaller(w.before):
		return pass.Reason{Code: pass.StoredSparse}
	}
	return pass.Reason{}
}

// skipOthers adds the rows of other inputs of the operators whose weights are pruned.
func skipOthers(s *pass.Step, found map[*ir.Value]*weight) {
	for n := range s.Model.Nodes() {
		if !ir.DefaultDomain(n.Op.Domain) || len(operator.Of(n).Weights()) == 0 {
			continue
		}
		for i, v := range n.Inputs() {
			if v != nil && v.Const != nil && pass.IsWeight(v.Const) && found[v] == nil {
				skipOther(s, n, i)
			}
		}
	}
}

func skipOther(s *pass.Step, n *ir.Node, i int) {
	v := n.Input(i)
	consumers := pass.Consumers(v)
	s.Ledger.Skip(v, consumers, pass.UnsupportedInput(n, i))
}

// common is the value of f for every layout of w, or the reason why there is none.
func common[T comparable](w *weight, f func(layout) T) (got T, reason pass.Reason) {
	if !w.unknown.None() {
		return got, w.unknown
	}
	got = f(w.layouts[0])
	for _, l := range w.layouts[1:] {
		if f(l) != got {
			return got, pass.Reason{Code: pass.Shape, Detail: "different axes at consumers"}
		}
	}
	return got, pass.Reason{}
}

// replace makes w's payload a view of the one before and adds the row. Chains of views need no intermediate copy.
func (w *weight) replace(s *pass.Step, note pass.Reason, view func(in io.ReaderAt) io.ReaderAt) {
	w.swap(s, note, &ir.Recipe{
		View: func(in []io.ReaderAt) io.ReaderAt { return view(in[0]) },
	})
}

// swap is replace for any recipe of one input and one output, which replaces elements by 0.
func (w *weight) swap(s *pass.Step, note pass.Reason, r *ir.Recipe) {
	r.Name, r.In, r.Out = s.Method, []*ir.Tensor{w.before}, []ir.Spec{w.before.Spec}
	w.replaceWith(s, note, r.Derive()[0], &pass.Bound{
		Of: w.before, Tensors: func(parts []*ir.Tensor) []*ir.Tensor {
			return parts[:1]
		}, New: pass.EachElement(func(x, y float32) bool { return y == x || y == 0 }),
	})
}

// set makes after the weight and adds the row.
func (w *weight) set(s *pass.Step, note pass.Reason, after *ir.Tensor) {
	w.replaceWith(s, note, after, pass.ExactBound(after, pass.Itself))
}

func (w *weight) replaceWith(s *pass.Step, note pass.Reason, after *ir.Tensor, bound *pass.Bound) {
	w.v.SetConst(after)
	s.Ledger.Changed(w.v, w.before, w.consumers, pass.Row{
		Form:    pass.InPlace,
		Notes:   pass.Notes(note),
		After:   []pass.Part{{Role: pass.Payload, Value: w.v, Tensor: after}},
		Restore: pass.Itself,
		Bound:   bound,
	})
}

// skip adds the row of a weight that is not changed after all.
func (w *weight) skip(s *pass.Step, reason pass.Reason) { s.Ledger.Skip(w.v, w.consumers, reason) }
