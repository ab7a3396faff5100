package rescale

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An Editor changes layers of one model, and then adds the ledger rows of their constants.
type Editor struct {
	step    *pass.Step
	weights []*weight // of the original model
	scales  map[*ir.Value][]scale
	notes   map[*ir.Value][]pass.Reason
}

// A weight is an original constant.
type weight struct {
	v         *ir.Value
	before    *ir.Tensor
	consumers []*ir.Node
	labels    []string
}

// New returns an Editor of the model of c. It does not read payloads.
func New(s *pass.Step) *Editor {
	e := &Editor{step: s, scales: map[*ir.Value][]scale{}, notes: map[*ir.Value][]pass.Reason{}}
	// Of the model before: rows name the consumers that weights had, and compare with their old tensors.
	for _, v := range pass.Weights(s.Model) {
		consumers := pass.Consumers(v)
		e.weights = append(e.weights, &weight{v, v.Const, consumers, pass.Labels(consumers)})
	}
	return e
}

// scale multiplies v along an axis.
func (e *Editor) scale(v *ir.Value, a axis, f []float64) {
	if isOne(f) {
		return
	}
	s := scale{a, a.spread(f)}
	e.replace(v, s.of(v.Const))
	e.scales[v] = append(e.scales[v], s)
}

func isOne(f []float64) bool { return !slices.ContainsFunc(f, func(x float64) bool { return x != 1 }) }

// replace sets v's tensor; v is no longer a graph input.
func (e *Editor) replace(v *ir.Value, t *ir.Tensor) {
	if v.IsInput() {
		v.Graph().RemoveInput(v)
		e.Note(v, pass.Reason{Code: pass.WasInput})
	}
	t.Name = v.Name
	v.SetConst(t)
	v.Type = typeOf(t)
}

// Note appends a note to v's ledger row.
func (e *Editor) Note(v *ir.Value, note pass.Reason) { e.notes[v] = append(e.notes[v], note) }

// Forget drops v's ledger row, which the caller adds.
func (e *Editor) Forget(v *ir.Value) {
	e.weights = slices.DeleteFunc(e.weights, func(w *weight) bool { return w.v == v })
}

// Report adds ledger rows of changed and removed constants, with these notes.
func (e *Editor) Report(changed, gone pass.Code) {
	for _, w := range e.weights {
		r := pass.Row{Consumers: w.labels}
		switch {
		case w.v.Removed():
			r.Form, r.Notes = pass.Folded, []pass.Reason{{Code: gone}}
		case w.v.Const != w.before:
			r.Form, r.Notes = pass.Rescaled, slices.Concat(e.lead(w.v, changed), e.notes[w.v])
			r.After = []pass.Part{{Role: pass.Payload, Value: w.v, Tensor: w.v.Const}}
			r.Restore = e.undo(w.v)
		default:
			continue
		}
		e.step.Ledger.Changed(w.v, w.before, w.consumers, r)
	}
}

// lead is the note on a changed constant, unless one of its notes has the same code.
func (e *Editor) lead(v *ir.Value, changed pass.Code) []pass.Reason {
	if slices.ContainsFunc(e.notes[v], func(r pass.Reason) bool { return r.Code == changed }) {
		return nil
	}
	return []pass.Reason{{Code: changed}}
}

// undo divides a weight by its factors; nil if that is not possible.
func (e *Editor) undo(v *ir.Value) func([]*ir.Tensor) *ir.Tensor {
	var back []scale
	// The last factor is divided out first.
	for _, s := range slices.Backward(e.scales[v]) {
		inv, ok := s.inverse()
		if !ok {
			return nil
		}
		back = append(back, inv)
	}
	if back == nil {
		return nil
	}
	return func(parts []*ir.Tensor) *ir.Tensor {
		t := parts[0]
		for _, s := range back {
			t = s.of(t)
		}
		return t
	}
}

func typeOf(t *ir.Tensor) *ir.Type {
	dims := make([]ir.Dim, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = ir.Dim{N: d}
	}
	return &ir.Type{Elem: t.DType, Shape: slices.Clip(dims)}
}
