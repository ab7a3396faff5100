package float

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/precision"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// maxSmallConst is the size, in elements, up to which constants are read in advance: masks, scales, small biases.
const maxSmallConst = 1024

// A graphConversion converts a whole graph to 16-bit arithmetic.
type graphConversion struct {
	*Converter
	step         *pass.Step
	plan         *precision.Plan
	floatReasons map[*ir.Node]pass.Reason  // nodes computed in float32 because of a constant
	fills        map[*ir.Value]bool        // constants that represent infinity
	exceedsRange map[*ir.Value]bool        // values that may exceed the range because of a constant
	activations  *activationRange          // nil without calibration samples
	notes        map[*ir.Value]pass.Reason // of constants, for the ledger
}

// convert converts the graph to 16-bit arithmetic. Weights with float32 consumers are stored before a Cast.
func (w *Converter) convert(ctx context.Context, s *pass.Step) error {
	x := newConversion(w, s)
	if err := x.findFloatConstants(ctx); err != nil {
		return err
	}
	if err := x.measureActivations(ctx); err != nil {
		return err
	}
	return x.rewrite(ctx)
}

func newConversion(w *Converter, s *pass.Step) *graphConversion {
	return &graphConversion{Converter: w, step: s, floatReasons: map[*ir.Node]pass.Reason{}, fills: map[*ir.Value]bool{},
		exceedsRange: map[*ir.Value]bool{}, notes: map[*ir.Value]pass.Reason{}}
}

// rewrite changes the graph.
func (x *graphConversion) rewrite(ctx context.Context) error {
	w, s := x.Converter, x.step
	x.plan = precision.New(s.Model, precision.Options{To: w.DType, KeepIO: w.KeepIO, KeepFloat: x.floatReason,
		OutOfRange: x.activations.outOfRange, Limit: x.limitOf})
	// After the plan, which decides which consumers read them in 16 bits.
	taken, rest := x.splitConstants()
	if len(taken) == 0 {
		return w.store(ctx, s, rest)
	}
	if !w.Note.None() {
		s.Ledger.Note("", w.Note)
	}
	x.noteFloatNodes()
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, taken)
	if err != nil {
		return err
	}
	halves := map[*ir.Value]*storedHalf{}
	for _, v := range taken {
		if x.step.Select.Excludes(v, pass.Consumers(v)) && pass.IsWeight(v.Const) {
			x.castUnselected(v)
			continue
		}
		if halves[first[v]] == nil {
			halves[first[v]] = x.constant(v)
		}
		x.replaceConstant(v, halves[first[v]])
	}
	x.plan.Apply(s.Model, x.attributeConstant)
	return w.store(ctx, s, rest)
}

// findFloatConstants finds the constants whose consumers stay float32.
func (x *graphConversion) findFloatConstants(ctx context.Context) error {
	for g := range x.step.Model.Graphs() {
		for _, v := range g.Consts() {
			if v.Const.DType != ir.Float {
				x.markInteger(v)
				continue
			}
			reason, err := x.keepsFloat(ctx, v)
			if err != nil {
				return err
			}
			if x.fills[v] {
				x.keepProducts(v)
			}
			if reason.None() {
				continue
			}
			for _, u := range slices.Concat(v.Uses(), pass.LeafUses(v)) {
				if u.Node != nil && x.floatReasons[u.Node].None() {
					x.floatReasons[u.Node] = reason
				}
			}
		}
	}
	// After constants, from which values are marked; keepSums last, as it needs the values that masks are part of,
	// and propagates what it marks itself.
	for _, mark := range []func(context.Context) error{x.markDivisions, x.markAttributes} {
		if err := mark(ctx); err != nil {
			return err
		}
	}
	x.propagate()
	x.keepSums()
	return nil
}

// keepsFloat is the reason why v and its consumers are float32.
func (x *graphConversion) keepsFloat(ctx context.Context, v *ir.Value) (none pass.Reason, err error) {
	sel := x.step.Select
	// Also small constants become 16 bits: with float32 ones a node would need Casts.
	sel.MinSize = 0
	if sel.Excludes(v, pass.Consumers(v)) && pass.IsWeight(v.Const) {
		return pass.Reason{Code: pass.FloatSelected, Detail: v.Name}, nil
	}
	// Large weights are read once, while they are written: values that do not fit make the run begin anew, with
	// Precheck.
	if v.Const.Elems() > maxSmallConst && !x.step.Env.Precheck && !x.Clamp {
		return none, nil
	}
	s, err := x.scan(ctx, x.step, v.Const)
	if err != nil {
		return none, err
	}
	x.notes[v] = x.clamped(s)
	x.exceedsRange[v] = s.finite > 0 || s.maxBits < spec.InfBits &&
		math.Float32frombits(s.maxBits) > x.largest*largeFraction &&
		v.Const.Elems() <= maxSmallConst
	switch {
	case s.maxBits >= maskBits && s.maxBits <= spec.InfBits && x.isFill(v):
		x.fills[v] = true
		return none, nil
	case v.Const.Elems() <= maxSmallConst || x.step.Env.Precheck || x.Clamp:
		switch r := x.unfit(s); {
		case r.Code == pass.NotFinite:
			return pass.Reason{Code: pass.FloatNotFinite, Detail: v.Name + ", " + r.Detail}, nil
		case !r.None():
			return pass.Reason{Code: pass.FloatWeight, Detail: v.Name + ", " + r.Detail}, nil
		}
	}
	return none, nil
}

// maskBits is the bits of 1e8: larger constants of masks, bounds and sums represent infinity, for which the largest
// number works, too.
const maskBits = 0x4cbebc20

func (x *graphConversion) isFill(v *ir.Value) bool {
	for _, l := range pass.LeafUses(v) {
		if l.Node == nil || !passesFill(l.Node) {
			return false
		}
	}
	return v.Const.Elems() <= maxSmallConst
}

func (x *graphConversion) floatReason(n *ir.Node) pass.Reason {
	if x.Converter.KeepFloat32.Node(n) {
		return pass.Reason{Code: pass.FloatSelected}
	}
	if t := x.step.Env.Target; n.Op.Is("Gemm") && !t.Can(pass.HalfGemm) {
		return pass.Reason{Code: pass.FloatTypes, Detail: t.Without(pass.HalfGemm)}
	}
	return x.floatReasons[n]
}

// splitConstants splits the constants into those with a 16-bit consumer, and the other weights.
func (x *graphConversion) splitConstants() (taken, rest []*ir.Value) {
	for g := range x.step.Model.Graphs() {
		for _, v := range g.Consts() {
			switch {
			case v.Const.DType == ir.Float && !v.Ambiguous && slices.ContainsFunc(v.Uses(), x.plan.Narrow):
				taken = append(taken, v)
			case pass.IsWeight(v.Const):
				rest = append(rest, v)
			}
		}
	}
	return taken, rest
}

// noteFloatNodes notes the nodes that are computed in float32.
func (x *graphConversion) noteFloatNodes() {
	for n := range x.step.Model.Nodes() {
		if reason := x.plan.Reasons[n]; !reason.None() && x.plan.Floats(n) {
			x.step.Ledger.Note("", reason.At(n))
		}
	}
}

// constant stores v in the 16-bit type.
func (x *graphConversion) constant(v *ir.Value) *storedHalf {
	limit := x.limit()
	if x.fills[v] {
		limit = x.fillLimit(v)
	}
	t := x.recipe(v.Const, limit, v.Const.Elems() <= maxSmallConst).Derive()[0]
	return &storedHalf{HalfType: x.HalfType, limit: limit, of: v.Name, form: x.form(v),
		stored: v.Graph().AddConst(v.Name+"_h", t)}
}

// form distinguishes tables from other weights.
func (x *graphConversion) form(v *ir.Value) pass.Form {
	for _, u := range v.Uses() {
		if u.Node == nil || !u.Node.Op.Is("Gather") || u.Index > 0 {
			return x.computed
		}
	}
	return x.lookup
}

// replaceConstant connects the consumers of v to the 16-bit constant; float32 consumers keep v if it is small, or read
// the constant through a Cast.
func (x *graphConversion) replaceConstant(v *ir.Value, h *storedHalf) {
	before, consumers := v.Const, pass.Consumers(v)
	keeps := v.Const.Elems() <= maxSmallConst
	for _, u := range slices.Clone(v.Uses()) {
		switch {
		case x.plan.Narrow(u) && u.Node != nil:
			u.Node.SetInput(u.Index, h.stored)
		case u.Node == nil && u.Graph.Owner == nil:
			keeps = true // its name is part of the interface
		case x.plan.Narrow(u):
			replaceOutput(u, h.stored)
		// Small constants are stored in both types: a Cast would take more bytes.
		case !keeps:
			if u.Node == nil {
				replaceOutput(u, h.widened())
			} else {
				u.Node.SetInput(u.Index, h.widened())
			}
		}
	}
	// Scalars have no rows.
	if pass.IsWeight(before) {
		x.step.Ledger.Changed(v, before, consumers, h.row(v, x.notes[v]))
	} else {
		weights.RemoveFromInputs(v)
	}
	v.Drop()
}

// castUnselected keeps v, which is not selected, and inserts a Cast after it.
func (x *graphConversion) castUnselected(v *ir.Value) {
	g := v.Graph()
	var y *ir.Value
	for _, u := range slices.Clone(v.Uses()) {
		if !x.plan.Narrow(u) || u.Node == nil {
			continue
		}
		if y == nil {
			y = g.Insert(g.First(), "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(x.DType)))
		}
		u.Node.SetInput(u.Index, y)
	}
	x.step.Ledger.Skip(v, pass.Consumers(v), pass.Reason{Code: pass.NotSelected})
}

func replaceOutput(u ir.Use, w *ir.Value) {
	outputs := slices.Clone(u.Graph.Outputs)
	outputs[u.Index] = w
	u.Graph.SetOutputs(outputs...)
}

// attributeConstant is the 16-bit tensor of one in an attribute.
func (x *graphConversion) attributeConstant(t *ir.Tensor) *ir.Tensor {
	return x.recipe(t, x.largest*maskLimit, true).Derive()[0]
}
