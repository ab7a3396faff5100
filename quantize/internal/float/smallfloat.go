package float

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A SmallFloatQuantizer stores weights as floats of at most 8 bits.
type SmallFloatQuantizer struct {
	spec.SmallFloat
	Form      pass.Form
	PerTensor bool
	// Nil if it does not support the weight.
	Encode func(t spec.SmallFloat, v *ir.Value, axes []int) spec.SmallFloatEncoding
	Note   pass.Reason // on each weight
}

// Run implements pass.Options.
func (w *SmallFloatQuantizer) Run(ctx context.Context, s *pass.Step) error {
	if err := w.raise(ctx, s); err != nil {
		return err
	}
	var vs []*ir.Value
	planned := map[*ir.Value]spec.SmallFloatEncoding{}
	for _, v := range pass.Weights(s.Model) {
		p, reason := w.plan(s, v)
		if reason.None() && s.Env.Precheck {
			var err error
			if reason, err = w.unfit(ctx, s, p); err != nil {
				return err
			}
		}
		if !reason.None() {
			s.Ledger.Skip(v, pass.Consumers(v), reason)
			continue
		}
		vs, planned[v] = append(vs, v), p
	}
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, vs)
	if err != nil {
		return err
	}
	stored, r := map[*ir.Value]*storedSmallFloat{}, rewrite.New(s)
	tables := onlyTables(vs, first, planned)
	for _, v := range vs {
		if stored[first[v]] == nil {
			if f := tables[first[v]]; f != nil {
				f.AsBytes = true
			}
			stored[first[v]] = storeSmallFloat(s, v, planned[v])
		}
		w.replace(s, r, v, stored[first[v]])
	}
	return nil
}

// onlyTables are the encodings, by the first of equal weights, of 8-bit floats of which Gather alone looks up rows.
func onlyTables(vs []*ir.Value, first map[*ir.Value]*ir.Value,
	planned map[*ir.Value]spec.SmallFloatEncoding) map[*ir.Value]*spec.Float8Encoding {
	tables := map[*ir.Value]*spec.Float8Encoding{}
	for _, v := range vs {
		f, _ := planned[first[v]].(*spec.Float8Encoding)
		if _, all := weights.Lookups(v); !all {
			f = nil
		}
		// One use of one of the equal weights that is no lookup makes all of them dense.
		if have, known := tables[first[v]]; !known || have != nil {
			tables[first[v]] = f
		}
	}
	return tables
}

// raise raises the model to the opset of the type if some weight is stored in it.
func (w *SmallFloatQuantizer) raise(ctx context.Context, s *pass.Step) error {
	fits := func(v *ir.Value) bool {
		_, reason := w.planAnyOpset(s, v)
		return reason.None()
	}
	if !weights.OpsetBelow(s.Model, w.Opset) || !slices.ContainsFunc(pass.Weights(s.Model), fits) {
		return nil
	}
	var no *opset.Unsupported
	if err := weights.RaiseOpset(ctx, s, w.Opset); !errors.As(err, &no) {
		return err
	}
	s.Ledger.Note("", weights.NotRaised(no))
	return nil
}

func (w *SmallFloatQuantizer) plan(s *pass.Step, v *ir.Value) (spec.SmallFloatEncoding, pass.Reason) {
	if have := v.Graph().Opset(""); have < w.Opset && !s.Select.Excludes(v, pass.Consumers(v)) {
		return nil, pass.Reason{Code: pass.Opset, Detail: fmt.Sprintf("%d below %d", have, w.Opset)}
	}
	return w.planAnyOpset(s, v)
}

// planAnyOpset is the encoding of v, whatever the opset, or the reason why it is skipped.
func (w *SmallFloatQuantizer) planAnyOpset(s *pass.Step, v *ir.Value) (spec.SmallFloatEncoding, pass.Reason) {
	us, reason := weights.Supported(s, v)
	if !reason.None() {
		return nil, reason
	}
	axes := us[0].ScaleAxes
	if w.PerTensor {
		axes = nil
	}
	p := w.Encode(w.SmallFloat, v, axes)
	if p == nil {
		return nil, pass.Reason{Code: pass.Shape, Detail: "no axis for blocks"}
	}
	lookups, all := weights.Lookups(v)
	perSite, sites := int64(rewrite.DequantizeBytes), 1
	// Bytes of tables need the list of their 256 numbers, and a second Gather in each lookup.
	if all {
		perSite, sites = rewrite.SmallLookupBytes, len(lookups)
	}
	if before, after := v.Const.Bytes(), p.Bytes()+rewrite.GraphBytes(perSite, sites, v); after >= before {
		return nil, pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("%d bytes → %d bytes", before, after)}
	}
	return p, pass.Reason{}
}

// unfit reads the weight and returns why no scale represents it.
func (w *SmallFloatQuantizer) unfit(ctx context.Context, s *pass.Step, p spec.SmallFloatEncoding) (pass.Reason, error) {
	r := p.Recipe()
	in, err := s.Eval.Open(ctx, r.In[0])
	if err != nil {
		return pass.Reason{}, err
	}
	err = r.Run(ctx, []io.ReaderAt{in}, []io.Writer{io.Discard, io.Discard})
	if no := (*pass.Unfit)(nil); errors.As(err, &no) {
		return no.Reason, nil
	}
	return pass.Reason{}, err
}

// A storedSmallFloat is a weight whose quantized values and scales are constants of the model.
type storedSmallFloat struct {
	spec.SmallFloatEncoding
	of                string
	quantized, scales *ir.Value
	cast, weight      *ir.Value // inserted on demand: the quantized values as floats, and the dequantized weight
	numbers           *ir.Value // what bytes of a table stand for, nil for other weights
}

func storeSmallFloat(step *pass.Step, v *ir.Value, p spec.SmallFloatEncoding) *storedSmallFloat {
	g, ts := v.Graph(), p.Recipe().Derive()
	s := &storedSmallFloat{SmallFloatEncoding: p, of: v.Name, quantized: g.AddConst(v.Name+"_q", ts[spec.OutQuantized]),
		scales: g.AddConst(v.Name+"_s", ts[spec.OutScales])}
	if f, ok := p.(*spec.Float8Encoding); ok && f.AsBytes {
		all := make([]byte, 1<<8)
		for i := range all {
			all[i] = byte(i)
		}
		s.numbers = step.Const(g, f.Dt, []int64{int64(len(all))}, all)
	}
	return s
}

// parts are the constants, for the ledger.
func (s *storedSmallFloat) parts() []pass.Part {
	ps := []pass.Part{
		{Role: pass.Payload, Value: s.quantized, Tensor: s.quantized.Const},
		{Role: pass.Scales, Value: s.scales, Tensor: s.scales.Const},
	}
	if s.numbers != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: s.numbers, Tensor: s.numbers.Const,
			Folded: 4 * s.numbers.Const.Elems()})
	}
	return ps
}

// dense is the dequantized weight in the type of v.
func (s *storedSmallFloat) dense(v *ir.Value) *ir.Value {
	if s.weight != nil {
		return s.weight
	}
	g := v.Graph()
	at := g.First()
	s.weight = s.EmitDequantize(g, at, s.quantized, s.scales)
	if v.Const.DType != ir.Float {
		s.weight = g.Insert(at, "Cast", []*ir.Value{s.weight}, ir.IntAttr("to", int64(v.Const.DType)))
	}
	return s.weight
}

// products are the uses of v that are no lookups, if all of these are products whose columns the scales of e can
// multiply; nil otherwise.
func products(v *ir.Value, e spec.SmallFloatEncoding, lookups []*weights.Consumer) []*weights.Consumer {
	f, cast := e.(*spec.Float8Encoding)
	if !cast || v.Const.DType != ir.Float || len(v.Const.Shape) != 2 {
		return nil
	}
	us, reason := weights.Uses(v)
	if !reason.None() {
		return nil
	}
	var all []*weights.Consumer
	for _, u := range us {
		s := u.Consumer
		if s != nil && slices.ContainsFunc(lookups, func(l *weights.Consumer) bool { return l.Use == s.Use }) {
			continue
		}
		if s == nil || s.Side != weights.Right || s.Elem != ir.Float || s.Node.Input(s.Use.Index) != v ||
			s.Node.Graph() != v.Graph() || s.ShortProduct() {
			return nil
		}
		if f.Layout.NumScales() > 1 && f.ScaleShape[s.ChannelAxis()] == 1 {
			return nil
		}
		all = append(all, s)
	}
	return all
}

// floats are the quantized values as floats. Bytes of a table stand for them.
func (s *storedSmallFloat) floats() *ir.Value {
	if s.cast == nil {
		g, of := s.quantized.Graph(), s.quantized
		if s.numbers != nil {
			of = s.numbers
		}
		s.cast = g.Insert(g.First(), "Cast", []*ir.Value{of}, ir.IntAttr("to", int64(ir.Float)))
	}
	return s.cast
}

// lookUp replaces a lookup in a table by one of quantized values and of scales. Runtimes look up no 8-bit floats, and
// would fold their Cast: so those of a table are bytes, whose numbers are looked up. Products need the floats anyway.
func (s *storedSmallFloat) lookUp(r *rewrite.Rewriter, c *weights.Consumer, table ir.Spec) {
	g, at := c.Node.Graph(), c.Node
	rows := func(of *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{of, c.Activation()}) }
	var x *ir.Value
	if s.numbers != nil {
		x = g.Insert(at, "Gather", []*ir.Value{s.floats(), r.Cast(g, at, rows(s.quantized), ir.Int32)})
	} else {
		x = rows(s.floats())
	}
	scales := s.scales
	switch shape := scales.Const.Shape; {
	case len(shape) > 0 && shape[0] == table.Shape[0]:
		scales = rows(scales)
	case len(shape) > 0: // all rows share them
		scales = r.Reshape(s.quantized.Graph(), scales, shape[1:]...)
	}
	r.ReplaceLookup(c, g.Insert(at, "Mul", []*ir.Value{x, scales}), table.DType)
}

// replace replaces v, which has equal values, by s.
func (w *SmallFloatQuantizer) replace(step *pass.Step, r *rewrite.Rewriter, v *ir.Value, s *storedSmallFloat) {
	before, consumers := v.Const, pass.Consumers(v)
	lookups, _ := weights.Lookups(v)
	scaled := products(v, s.SmallFloatEncoding, lookups)
	row := pass.Row{Form: w.Form, Notes: pass.Notes(weights.RemoveFromInputs(v), w.Note), Restore: s.Restore,
		Bound: s.Bound(), After: s.parts()}
	switch {
	case s.numbers != nil:
		row.Form = pass.GatherQuantized
	case scaled != nil:
		row.Form = pass.CastProduct
	default: // all that read it share the weight
		lookups = nil
		v.ReplaceUses(s.dense(v))
	}
	if v.Name != s.of {
		row.SharedWith = s.of
	}
	for _, c := range lookups {
		s.lookUp(r, c, before.Spec)
	}
	for _, p := range scaled {
		r.ScaledProduct(p, s.floats(), s.scales)
	}
	step.Ledger.Changed(v, before, consumers, row)
	v.Drop()
}
