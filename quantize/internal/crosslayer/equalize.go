package crosslayer

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

const (
	sweeps = 100
	// converged is the maximum distance of factors from 1: 1 % is far below a quantization step.
	converged = 0.01
	// least is the minimum size of a channel relative to the largest: smaller channels vanish in
	// quantization anyway, and would get factors that inflate their biases.
	least = 1.0 / 256
)

// Equalize divides each output channel of a layer by a factor and multiplies the consuming weights by it, such that the
// maximum magnitudes of both are equal (Nagel et al., section 4.1). It iterates over all pairs until no factor is far
// from 1, and adds ledger rows of all layers.
func Equalize(ctx context.Context, s *pass.Step) error {
	e := rescale.New(s)
	ps := pairs(e, s.Model)
	// Pairs that share a layer converge together; parts one after the other bound the memory of their peaks.
	for _, part := range parts(ps) {
		if err := settle(ctx, part); err != nil {
			return err
		}
	}
	e.Report(pass.Equalized, "")
	for _, p := range ps {
		s.Ledger.Skip(p.from.layer.Weight, []*ir.Node{p.from.layer.Node}, p.unchanged())
	}
	return nil
}

// unchanged is the reason why a weight is unchanged.
func (p *pair) unchanged() pass.Reason {
	if !p.reason.None() {
		return p.reason
	}
	return pass.Reason{Code: pass.Balanced}
}

// A side is a layer of a pair, the peaks of its weight and its accumulated factors.
type side struct {
	layer   *rescale.Layer
	peaks   *rescale.Peaks
	in, out []float64
}

// A pair is a layer and the layers that consume its channels, or the reason why there is none.
type pair struct {
	from   *side
	to     []*consumer
	reason pass.Reason
}

// A consumer is a layer that reads channels; each channel is a number of its inputs.
type consumer struct {
	*side
	each int64
}

// settle equalizes a set of pairs connected by shared layers.
func settle(ctx context.Context, ps []*pair) error {
	all := sidesOf(ps)
	for _, s := range all {
		var err error
		if s.peaks, err = s.layer.Peaks(ctx); err != nil {
			return err
		}
		s.in, s.out = ones(s.layer.Inputs), ones(s.layer.Outputs)
	}
	// Factors of neighbouring pairs change each other: sweeps go on until none is far from 1.
	for range sweeps {
		farthest := 0.0
		for _, p := range ps {
			farthest = max(farthest, p.equalize())
		}
		if farthest < converged {
			break
		}
	}
	for _, s := range all {
		s.peaks = nil
		// The product of all steps at once, in one view of the weight; the steps themselves changed peaks only.
		s.layer.ScaleInputs(s.in)
		if err := s.layer.ScaleOutputs(ctx, s.out); err != nil {
			return err
		}
	}
	return nil
}

// equalize does one step and returns the maximum distance of a factor from 1. A step with all
// factors close to 1 is skipped, so that a second run changes nothing.
func (p *pair) equalize() float64 {
	made, read := p.from.peaks.Outputs(), make([]float64, p.from.layer.Outputs)
	for _, r := range p.to {
		for i, x := range r.peaks.Inputs() {
			read[int64(i)/r.each] = max(read[int64(i)/r.each], x)
		}
	}
	f, inverse, farthest := ones(int64(len(made))), ones(int64(len(made))), 0.0
	raise(made)
	raise(read)
	for i := range f {
		// Weights of zeros, and infinities, have no factors.
		if !positive(made[i]) || !positive(read[i]) {
			continue
		}
		// Both ranges become their geometric mean.
		f[i] = math.Sqrt(made[i] / read[i])
		inverse[i] = 1 / f[i]
		farthest = max(farthest, math.Abs(math.Log(f[i])))
	}
	if farthest < converged {
		return farthest
	}
	p.from.peaks.ScaleOutputs(inverse)
	multiply(p.from.out, inverse)
	for _, r := range p.to {
		spread := make([]float64, r.layer.Inputs)
		for i := range spread {
			spread[i] = f[int64(i)/r.each]
		}
		r.peaks.ScaleInputs(spread)
		multiply(r.in, spread)
	}
	return farthest
}

// raise increases values below the minimum.
func raise(x []float64) {
	floor := slices.Max(x) * least
	for i := range x {
		x[i] = max(x[i], floor)
	}
}

// positive reports whether x is neither zero, infinite nor NaN.
func positive(x float64) bool { return x > 0 && x <= math.MaxFloat64 }

func ones(n int64) []float64 { return slices.Repeat([]float64{1}, int(n)) }

func multiply(x, by []float64) {
	for i := range x {
		x[i] *= by[i]
	}
}

// sidesOf are the layers of pairs, without duplicates, in order.
func sidesOf(ps []*pair) []*side {
	var all []*side
	for _, p := range ps {
		if !slices.Contains(all, p.from) {
			all = append(all, p.from)
		}
		for _, r := range p.to {
			if !slices.Contains(all, r.side) {
				all = append(all, r.side)
			}
		}
	}
	return all
}

// parts are the sets of pairs connected by shared layers; one set is in memory at a time.
func parts(ps []*pair) [][]*pair {
	var list [][]*pair
	for _, p := range ps {
		if !p.reason.None() {
			continue
		}
		part := []*pair{p}
		list = slices.DeleteFunc(list, func(other []*pair) bool {
			touches := slices.ContainsFunc(sidesOf(other), func(s *side) bool { return slices.Contains(sidesOf(part), s) })
			if touches {
				part = append(other, part...)
			}
			return touches
		})
		list = append(list, part)
	}
	return list
}
