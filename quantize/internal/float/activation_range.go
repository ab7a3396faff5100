package float

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// An activationRange is the maximum magnitudes of activations on calibration samples.
type activationRange struct {
	t       *HalfType
	values  []*ir.Value          // of the main graph
	maxBits map[*ir.Value]uint32 // bits of the maximum magnitude
	masked  map[*ir.Value]bool   // may contain constants that represent infinity, of attention masks
}

// rangeMargin is the fraction of the type's range that samples may use: other inputs have somewhat larger activations.
const rangeMargin = 0.5

// measureActivations finds the activations close to, or beyond, the end of the type's range. They and the nodes around
// them stay float32.
func (x *graphConversion) measureActivations(ctx context.Context) error {
	switch {
	case x.Data == nil: // the range is that of float32
		return nil
	// Random inputs show no range of real ones.
	case x.Data.Path == "":
		x.step.Ledger.Note("", pass.Reason{Code: pass.RangesUnknown,
			Detail: fmt.Sprintf("range of %s ±%g", x.DType, x.largest)})
		return nil
	case x.step.Env.DryRun:
		return nil
	}
	r := &activationRange{t: x.HalfType, maxBits: map[*ir.Value]uint32{}, masked: x.maskedValues()}
	if err := r.observe(ctx, x.step, x.Data); err != nil {
		return err
	}
	x.activations = r
	r.report(x.step)
	return nil
}

// observe observes all values of the main graph.
func (r *activationRange) observe(ctx context.Context, s *pass.Step, d *calibrate.Data) error {
	named := map[string]*ir.Value{}
	var names []string
	for v := range s.Model.Values() {
		if v.Graph() == s.Model.Graph && v.Const == nil && !v.Ambiguous && v.Name != "" && named[v.Name] == nil {
			named[v.Name] = v
			names, r.values = append(names, v.Name), append(r.values, v)
		}
	}
	return d.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		if a.Kind == ir.Dense && a.DType == ir.Float {
			v := named[name]
			r.maxBits[v] = max(r.maxBits[v], r.magnitude(v, ir.View[float32](a)))
		}
		return nil
	})
}

// magnitude is the bits of the maximum magnitude, without constants that represent infinity in masked values. A number
// that is not finite is out of every range.
func (r *activationRange) magnitude(v *ir.Value, x []float32) uint32 {
	most := kernel.AbsMaxBits(x)
	// Only if the largest one may be of a mask are elements looked at one by one.
	if most < maskBits || !r.masked[v] {
		return most
	}
	most = 0
	for _, e := range x {
		if b := math.Float32bits(e) &^ (1 << 31); b < maskBits {
			most = max(most, b)
		}
	}
	return most
}

// outOfRange is the reason why v is float32.
func (r *activationRange) outOfRange(v *ir.Value) pass.Reason {
	if r == nil || math.Float32frombits(r.maxBits[v]) < rangeMargin*r.t.largest {
		return pass.Reason{}
	}
	return pass.Reason{Code: pass.FloatActivation, Detail: v.Name}
}

// report notes the values out of range, or else the largest one.
func (r *activationRange) report(s *pass.Step) {
	var furthest *ir.Value
	for _, v := range r.values {
		if !r.outOfRange(v).None() {
			s.Ledger.Note(v.Name, pass.Reason{Code: pass.ActivationOutOfRange, Detail: r.of(v)})
		}
		if furthest == nil || r.maxBits[v] > r.maxBits[furthest] {
			furthest = v
		}
	}
	if furthest != nil && r.outOfRange(furthest).None() {
		s.Ledger.Note(furthest.Name, pass.Reason{Code: pass.ActivationRange, Detail: r.of(furthest)})
	}
}

func (r *activationRange) of(v *ir.Value) string {
	return fmt.Sprintf("maximum magnitude %g on the samples, range of %s ±%g", math.Float32frombits(r.maxBits[v]),
		r.t.DType, r.t.largest)
}

// passesFill reports whether the output of n represents infinity where an input does: n moves, selects or casts
// elements, adds to them, or multiplies or negates them.
func passesFill(n *ir.Node) bool {
	f := operator.Of(n)
	switch {
	case f.Move.Moves(), f.Selects, f.Affine == operator.Offset, f.Affine == operator.Factor && f.Commutative:
		return true
	case n.Op.Is("Cast"):
		return true
	}
	return n.Op.Is("Neg")
}

// maskedValues are the values computed from constants that represent infinity, up to the next operator that uses them.
func (x *graphConversion) maskedValues() map[*ir.Value]bool {
	masked := map[*ir.Value]bool{}
	next := slices.Collect(maps.Keys(x.fills))
	for len(next) > 0 {
		v := next[len(next)-1]
		next = next[:len(next)-1]
		for _, u := range v.Uses() {
			if u.Node == nil || !passesFill(u.Node) {
				continue
			}
			for _, y := range u.Node.Outputs {
				if y != nil && !masked[y] {
					masked[y] = true
					next = append(next, y)
				}
			}
		}
	}
	return masked
}
