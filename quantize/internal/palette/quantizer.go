package palette

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A Quantizer stores the weights of a model as indices into codebooks.
type Quantizer struct {
	Entries int   // of a codebook: 4, 16, 64 or 256
	Vector  int   // consecutive elements of an entry: 1, 2 or 4
	Block   int64 // elements that share a scale; 0 without scales
	// Channels is the number of output channels that share a codebook, Run that of consecutive elements; 0 for one
	// codebook for the tensor.
	Channels, Run int64
	Samples       *calibrate.Data // of k-means weighted by importance; nil without
}

// typeOpset is the first one that has 4-bit integers.
const typeOpset = 21

// Apply stores the weights of the model of s.
func (q *Quantizer) Apply(ctx context.Context, s *pass.Step) error {
	vs := pass.Weights(s.Model)
	fits := func(v *ir.Value) bool { return second(q.planAnyOpset(s, v)).None() }
	if weights.OpsetBelow(s.Model, weights.UnpackOpset) && slices.ContainsFunc(vs, fits) {
		var no *opset.Unsupported
		if err := weights.RaiseOpset(ctx, s, weights.UnpackOpset); err != nil && !errors.As(err, &no) {
			return err
		}
	}
	var plans []*plan
	for _, v := range vs {
		p, reason := q.plan(s, v)
		if !reason.None() {
			s.Ledger.Skip(v, pass.Consumers(v), reason)
			continue
		}
		plans = append(plans, p)
	}
	// Tables shared by all weights count once, so that whether they are worth it is decided for all plans.
	plans, err := spec.Precheck(ctx, s, q.worthTables(s, plans), func(p *plan) (*ir.Value, spec.Encoding) {
		return p.weight, p.encoding
	})
	if err != nil {
		return err
	}
	if err := q.importances(ctx, s, plans); err != nil {
		return err
	}
	return q.replace(ctx, s, plans)
}

func second[A, B any](_ A, b B) B { return b }

// A plan is a weight, its encoding, and bytes in the file before and after.
type plan struct {
	weight        *ir.Value
	encoding      *encoding
	before, after int64
}

func larger(before, after int64) pass.Reason {
	return pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("%d bytes → %d bytes", before, after)}
}

// worthTables are plans, none if the tables that they share are larger than what they save together.
func (q *Quantizer) worthTables(s *pass.Step, plans []*plan) []*plan {
	saved, tables := int64(0), int64(0)
	if q.Block > 0 {
		tables = scaleTableBytes
	}
	for _, p := range plans {
		saved += p.before - p.after
	}
	if i := slices.IndexFunc(plans, func(p *plan) bool { return p.encoding.wholeBytes() }); i >= 0 {
		n, _ := plans[i].encoding.unit()
		tables += 256*n + tensorBytes
	}
	if saved > tables {
		return plans
	}
	for _, p := range plans {
		s.Ledger.Skip(p.weight, pass.Consumers(p.weight), larger(p.before, p.after+tables))
	}
	return nil
}

func (q *Quantizer) plan(s *pass.Step, v *ir.Value) (*plan, pass.Reason) {
	p, reason := q.planAnyOpset(s, v)
	if have := v.Graph().Opset(""); reason.None() && have < weights.UnpackOpset {
		return nil, pass.Reason{Code: pass.Opset, Detail: fmt.Sprintf("%d below %d", have, weights.UnpackOpset)}
	}
	return p, reason
}

// planAnyOpset is the encoding of v, whatever the opset, or the reason why it is skipped.
func (q *Quantizer) planAnyOpset(s *pass.Step, v *ir.Value) (*plan, pass.Reason) {
	us, reason := weights.Supported(s, v)
	if !reason.None() {
		return nil, reason
	}
	e := &encoding{Layout: q.layout(s, v, us), weight: v.Const}
	if weights.InputsHaveMean(v) {
		e.outputs = outputsOf(v.Const.Shape, us[0].ScaleAxes)
	}
	if l := e.Layout; l.Inner%l.entry() != 0 && l.Groups > 1 || l.Block%l.entry() != 0 {
		return nil, pass.Reason{Code: pass.Unsupported,
			Detail: fmt.Sprintf("vectors of %d in groups of %d elements and blocks of %d", l.Vector, l.Inner, l.Block)}
	}
	before, after := v.Const.Bytes(), e.Bytes()+rewrite.GraphBytes(e.graphBytes(), 1, v)
	if after >= before {
		return nil, larger(before, after)
	}
	return &plan{v, e, before, after}, pass.Reason{}
}

// layout is that of v. Indices of 4 bits have a data type where the target and the opset have it.
func (q *Quantizer) layout(s *pass.Step, v *ir.Value, us []*weights.Use) *Layout {
	axis, size := -1, q.Run
	if axes := us[0].ScaleAxes; q.Channels > 0 && len(axes) > 0 {
		axis, size = axes[len(axes)-1], q.Channels
	}
	l := newLayout(v.Const.Shape, axis, size, q.Block, q.Entries, q.Vector)
	if lookups, _ := weights.Lookups(v); len(lookups) > 0 && l.setRow(l.Elems/v.Const.Shape[0], v.Graph().Opset("")) {
		return l
	}
	if q.Entries == 16 && v.Graph().Opset("") >= typeOpset && s.Env.Target.Can(pass.Cast4) {
		l.Index = ir.Uint4
	}
	return l
}

// replace stores plans, those with equal weights once.
func (q *Quantizer) replace(ctx context.Context, s *pass.Step, plans []*plan) error {
	vs := make([]*ir.Value, len(plans))
	for i, p := range plans {
		vs[i] = p.weight
	}
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, vs)
	if err != nil {
		return err
	}
	rows := map[*ir.Value]int64{} // of equal weights of which one is a table
	for _, p := range plans {
		rows[first[p.weight]] = max(rows[first[p.weight]], p.encoding.Row)
	}
	done, r := map[*ir.Value]*stored{}, rewrite.New(s)
	for _, p := range plans {
		// Equal weights are stored once if they have one layout: that of the table, which is dequantized for consumers that
		// are no lookups, too.
		if row := rows[first[p.weight]]; row > 0 {
			p.encoding.Row, p.encoding.Index = row, ir.Uint8
		}
		st := done[first[p.weight]]
		// Equal weights may have scales along other axes.
		if st == nil || !st.Same(p.encoding) {
			st = store(s, p.weight, p.encoding)
			done[first[p.weight]] = st
		}
		st.replace(s, r, p.weight)
	}
	return nil
}

// replace replaces v, which has equal values, by st.
func (st *stored) replace(s *pass.Step, r *rewrite.Rewriter, v *ir.Value) {
	before, consumers := v.Const, pass.Consumers(v)
	row := pass.Row{Form: pass.CastMul, Notes: pass.Notes(weights.RemoveFromInputs(v)), Restore: st.Restore,
		Bound: st.Bound(), Sharing: st.sharing()}
	if v.Name != st.of {
		row.SharedWith = st.of
	}
	lookups, all := weights.Lookups(v)
	if st.Row == 0 {
		lookups, all = nil, false
	}
	for _, c := range lookups {
		st.lookUp(s, r, c)
	}
	if all {
		row.Form = pass.GatherQuantized
	} else {
		v.ReplaceUses(st.weightOf(s))
	}
	row.After = st.parts
	s.Ledger.Changed(v, before, consumers, row)
	v.Drop()
}

// weightOf is the weight, for consumers that look up no rows.
func (st *stored) weightOf(s *pass.Step) *ir.Value {
	if st.dense == nil {
		st.dense = st.folded(s).dense(st)
	}
	return st.dense
}
