package float

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// castBytes is the size of a Cast node and the longer names.
const castBytes = 80

// store stores vs in the 16-bit type before a Cast.
func (w *Converter) store(ctx context.Context, s *pass.Step, vs []*ir.Value) error {
	var fit []*ir.Value
	notes := map[*ir.Value]pass.Reason{}
	for _, v := range vs {
		reason := w.refuse(s, v)
		if reason.None() {
			var err error
			if notes[v], reason, err = w.examine(ctx, s, v.Const); err != nil {
				return err
			}
		}
		if !reason.None() {
			s.Ledger.Skip(v, pass.Consumers(v), reason)
			continue
		}
		fit = append(fit, v)
	}
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, fit)
	if err != nil {
		return err
	}
	// Equal weights are stored once, with one Cast.
	halves, r := map[*ir.Value]*storedHalf{}, rewrite.New(s)
	for _, v := range fit {
		if halves[first[v]] == nil {
			halves[first[v]] = w.half(v)
		}
		halves[first[v]].replace(s, r, v, notes[v])
	}
	return nil
}

// examine reads t if its values must be known in advance, and returns a note, or why it is skipped.
func (w *Converter) examine(ctx context.Context, step *pass.Step, t *ir.Tensor) (note, reason pass.Reason, err error) {
	if !step.Env.Precheck && !w.Clamp {
		return pass.Reason{}, pass.Reason{}, nil
	}
	s, err := w.scan(ctx, step, t)
	return w.clamped(s), w.unfit(s), err
}

func (w *Converter) clamped(s rangeCount) pass.Reason {
	if !w.Clamp || s.overflows == 0 {
		return pass.Reason{}
	}
	return pass.Reason{Code: pass.Clamped, Detail: fmt.Sprintf("%d elements beyond the range of %s → ±%g", s.overflows,
		w.DType, w.largest)}
}

func (w *Converter) refuse(s *pass.Step, v *ir.Value) pass.Reason {
	consumers := pass.Consumers(v)
	if s.Select.Excludes(v, consumers) {
		return pass.Reason{Code: pass.NotSelected}
	}
	t := v.Const
	switch {
	case t.DType != ir.Float:
		return pass.Reason{Code: pass.DType, Detail: t.DType.String()}
	case v.Ambiguous:
		return pass.Reason{Code: pass.Ambiguous}
	case len(v.Uses()) == 0:
		return pass.Reason{Code: pass.Unused}
	case v.Graph().Opset("") < w.opset:
		return pass.Reason{Code: pass.Opset, Detail: fmt.Sprintf("%d below %d", v.Graph().Opset(""), w.opset)}
	case t.Bytes()/2 <= castBytes:
		return pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("%d bytes → %d bytes", t.Bytes(), t.Bytes()/2+castBytes)}
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			return pass.Reason{Code: pass.GraphOutput}
		}
	}
	// Of an operator that is not known nothing says that it reads a Cast as it read a constant; parameters of
	// quantized values have to stay of their type.
	for _, n := range consumers {
		_, _, known := opset.Signature(n.Op, opset.Version(n))
		if !known && n.Callee() == nil || len(operator.Of(n).Quantized()) > 0 {
			return pass.Reason{Code: pass.Shared}.At(n)
		}
	}
	return pass.Reason{}
}

// limit is the magnitude to which weights are clamped; 0 for none.
func (w *Converter) limit() float32 {
	if w.Clamp {
		return w.largest
	}
	return 0
}

// A storedHalf is a weight stored in a 16-bit type.
type storedHalf struct {
	*HalfType
	limit  float32 // of clamped magnitudes; 0 if none is clamped
	of     string
	form   pass.Form
	stored *ir.Value
	cast   *ir.Value // to float32, inserted on demand
}

func (w *Converter) half(v *ir.Value) *storedHalf {
	g := v.Graph()
	return &storedHalf{HalfType: w.HalfType, limit: w.limit(), of: v.Name, form: w.stored,
		stored: g.AddConst(v.Name+"_h", w.recipe(v.Const, w.limit(), false).Derive()[0])}
}

// widened is the weight as float32.
func (h *storedHalf) widened() *ir.Value {
	if h.cast == nil {
		g := h.stored.Graph()
		h.cast = g.Insert(g.First(), "Cast", []*ir.Value{h.stored}, ir.IntAttr("to", int64(ir.Float)))
	}
	return h.cast
}

// replace replaces v, which has equal values, by h. Rows that are looked up are widened once they are: runtimes would
// fold the Cast of the table.
func (h *storedHalf) replace(s *pass.Step, r *rewrite.Rewriter, v *ir.Value, note pass.Reason) {
	before, consumers := v.Const, pass.Consumers(v)
	row := h.row(v, note)
	lookups, all := weights.Lookups(v)
	// Where the table is widened on loading anyway, a lookup of 16-bit rows gains nothing.
	if !s.Env.Target.Can(pass.Gather16) {
		lookups, all = nil, false
	}
	for _, c := range lookups {
		g, at := c.Node.Graph(), c.Node
		r.ReplaceLookup(c, r.Cast(g, at, g.Insert(at, "Gather", []*ir.Value{h.stored, c.Activation()}), ir.Float),
			before.DType)
	}
	if all {
		row.Form = h.lookup
	} else {
		v.ReplaceUses(h.widened())
	}
	s.Ledger.Changed(v, before, consumers, row)
	v.Drop()
}

// row is the ledger row of v, which h replaces.
func (h *storedHalf) row(v *ir.Value, note pass.Reason) pass.Row {
	before := v.Const
	r := pass.Row{
		Form:    h.form,
		Notes:   pass.Notes(weights.RemoveFromInputs(v), note),
		After:   []pass.Part{{Role: pass.Payload, Value: h.stored, Tensor: h.stored.Const}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return widen(before.Spec, parts[0]) },
	}
	r.Bound = h.bound(before, r.Restore)
	if v.Name != h.of {
		r.SharedWith = h.of
	}
	return r
}

// widen is a view of 16-bit floats as another float type.
func widen(s ir.Spec, half *ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "widen", In: []*ir.Tensor{half}, Out: []ir.Spec{s}, Work: ir.CopyBuffer * 3 / 2}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		f := pass.NewFloats(in[0], half.DType)
		buf := make([]float32, 0, min(s.Elems(), pass.Block))
		w := &spec.FloatWriter{W: out[0], Dt: s.DType}
		for i := int64(0); i < s.Elems(); i += int64(cap(buf)) {
			buf = buf[:min(int64(cap(buf)), s.Elems()-i)]
			if err := f.Read(buf, i); err != nil {
				return err
			}
			if err := w.Flush(ctx, &buf); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}

// bound is what the stored elements of w must hold: each is the element rounded to nearest, or clamped.
func (h *storedHalf) bound(w *ir.Tensor, restore func([]*ir.Tensor) *ir.Tensor) *pass.Bound {
	largest := h.largest
	if h.limit > 0 {
		largest = h.limit
	}
	return &pass.Bound{
		Of:      w,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{restore(parts)} },
		New: pass.EachElement(func(x, y float32) bool {
			// Most elements, without clamping.
			if spec.Magnitude(y-x) <= spec.Magnitude(x)*h.half || y == x || x != x && y != y { // infinities and NaN stay
				return true
			}
			c := min(max(x, -largest), largest)
			return spec.Magnitude(y-c) <= spec.Magnitude(c)*h.half+h.subnormal
		}),
	}
}
