package sparse

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Dense turns the forms of this package, and tensors stored as coordinates by any
// program, into plain weights again, bit for bit.
type Dense struct{ pass.Selection }

var denseMethod = &pass.Method{
	Name:    "dense",
	Command: "sparse",
	Doc:     "undo sparse forms: plain weights, bit for bit",
	Stage:   pass.Prepare,
	New:     func() pass.Options { return &Dense{} },
}

// Method describes the method.
func (Dense) Method() *pass.Method { return denseMethod }

// Run implements pass.Options.
func (Dense) Run(ctx context.Context, s *pass.Step) error {
	f := newFinder(s)
	fs := f.forms(ctx)
	own := partsOf(fs)
	var coordinates []*ir.Value
	for g := range s.Model.Graphs() {
		for _, v := range g.Consts() {
			switch {
			case isCoordinateConstant(v) && stores(v.Const.DType) && !v.Ambiguous:
				coordinates = append(coordinates, v)
			case pass.IsWeight(v.Const) && own[v.Const] == "":
				s.Ledger.Skip(v, pass.Consumers(v), pass.Reason{Code: pass.StoredDense})
			}
		}
	}
	for _, x := range fs {
		no := plain(s, x.value, restore(x.layout, x.value.Name)(x.parts), x.sizes())
		f.settle(x.parts, no)
	}
	for _, v := range coordinates {
		if no := plain(s, v, v.Const, "from coordinates"); !no.None() {
			s.Ledger.Skip(v, pass.Consumers(v), no)
		}
	}
	return nil
}

func (x graphForm) sizes() string {
	return arithmetic([]size{{x.label(), cost(x.layout, x.value)}, {"dense", denseCost(x.dense(), x.value.Name)}})
}

// settle clears constants that left the graph with their form, as the row is that of the
// dense weight, or gives the payload its row with the reason why the form stays.
func (f *finder) settle(parts []*ir.Tensor, reason pass.Reason) {
	for _, t := range parts {
		v := f.holders[t]
		switch {
		case v == nil:
		case v.Removed():
			v.Const = nil
		case !reason.None() && pass.IsWeight(t):
			f.step.Ledger.Skip(v, pass.Consumers(v), reason)
		}
	}
}

// plain makes t the constant that v's consumers read instead, under v's name. If v is not
// selected it returns the reason.
func plain(s *pass.Step, v *ir.Value, t *ir.Tensor, detail string) (no pass.Reason) {
	consumers := pass.Consumers(v)
	if s.Select.Excludes(&ir.Value{Name: v.Name, Const: t}, consumers) {
		return s.Select.Reason(&ir.Value{Name: v.Name, Const: t}, consumers)
	}
	w := v.Graph().AddConst("c", &ir.Tensor{Spec: t.Spec, Source: t.Source})
	v.ReplaceUses(w)
	v.Drop()
	if !isOutput(w) { // which has v's name by now
		w.Name = v.Name
	}
	s.Ledger.Changed(v, t, consumers, pass.Row{
		Form: pass.InPlace, Notes: pass.Notes(pass.Reason{Code: pass.Expanded, Detail: detail}),
		After:   []pass.Part{{Role: pass.Payload, Value: w, Tensor: w.Const}},
		Restore: pass.Itself, Bound: pass.ExactBound(t, pass.Itself),
	})
	return pass.Reason{}
}
