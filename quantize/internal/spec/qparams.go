package spec

import (
	"context"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A minMaxObserver is the range of each scale's elements: the bits of the maximum magnitude, and for asymmetric schemes
// minimum and maximum.
type minMaxObserver struct {
	bits   []uint32
	lo, hi []float32
	magnitudes
}

func newMinMaxObserver(n int64, s QuantSpec) *minMaxObserver {
	m := &minMaxObserver{bits: make([]uint32, n)}
	if !s.Symmetric {
		m.lo, m.hi = make([]float32, n), make([]float32, n) // the range always contains zero
	}
	return m
}

func (m *minMaxObserver) observe(g ScaleLayout, q segment, x []float32) {
	if g.columnwise() {
		cols := m.bits[q.first:][:g.channels]
		kernel.ColAbsMaxBits(cols, x)
		// Symmetric schemes need the largest magnitude alone.
		if m.lo != nil {
			kernel.ColMinMax(m.lo[q.first:][:g.channels], m.hi[q.first:][:g.channels], x)
		}
		return
	}
	m.bits[q.first] = max(m.bits[q.first], kernel.AbsMaxBits(x))
	if m.lo != nil {
		lo, hi := kernel.MinMax(x)
		m.lo[q.first], m.hi[q.first] = min(m.lo[q.first], lo), max(m.hi[q.first], hi)
	}
}

// InfBits are the bits of the float32 infinity.
const InfBits = 0x7f800000

// qparams is scale i and its zero point: those of zeros for a dead channel.
func (m *minMaxObserver) qparams(s QuantSpec, i int64, tensor string) (scale float32, zero int32, err error) {
	if reason := NotFinite(m.bits[i]); !reason.None() {
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: reason}
	}
	// Symmetric: the range of the largest magnitude on both sides.
	hi := math.Float32frombits(m.bits[i])
	lo := -hi
	if m.lo != nil {
		lo, hi = m.lo[i], m.hi[i]
	}
	scale, zero, ok := s.QParams(lo, hi)
	// A scale may be too small, or too large; zeros are in place of small ones only.
	dead := !ok && scale < 1
	m.add(max(-lo, hi), dead)
	switch {
	case dead:
		// The parameters of zeros, which is what its elements then round to.
		scale, zero, _ = s.QParams(0, 0)
	case !ok:
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: noScaleOf(max(-lo, hi))}
	}
	return scale, zero, nil
}

// QParams are the scales and zero points of a tensor.
type QParams struct {
	Scale     []float32
	ZeroPoint []int32 // nil for symmetric schemes
}

// ObserveQParams reads the whole tensor for its scales.
func ObserveQParams(ctx context.Context, in io.ReaderAt, t *ir.Tensor, g ScaleLayout, s QuantSpec) (*QParams, error) {
	r := newSegmentBuffer(nil, in, t.DType, g, 1)
	defer r.close()
	return r.observe(ctx, t, g, s)
}

func (r *segmentBuffer) observe(ctx context.Context, t *ir.Tensor, g ScaleLayout, s QuantSpec) (*QParams, error) {
	m := newMinMaxObserver(g.NumScales(), s)
	err := g.segments(func(q segment) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		m.observe(g, q, x)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return m.all(s, t.Name)
}

func (m *minMaxObserver) all(s QuantSpec, tensor string) (*QParams, error) {
	a := newQParams(int64(len(m.bits)), s)
	for i := range m.bits {
		scale, zero, err := m.qparams(s, int64(i), tensor)
		if err != nil {
			return nil, err
		}
		a.set(i, scale, zero)
	}
	if err := m.unfit(tensor); err != nil {
		return nil, err
	}
	return a, nil
}

func newQParams(n int64, s QuantSpec) *QParams {
	a := &QParams{Scale: make([]float32, n)}
	if !s.Symmetric {
		a.ZeroPoint = make([]int32, n)
	}
	return a
}

func (a *QParams) set(i int, scale float32, zero int32) {
	a.Scale[i] = scale
	if a.ZeroPoint != nil {
		a.ZeroPoint[i] = zero
	}
}

// zeroPointOf is the zero point of scale i.
func (a *QParams) zeroPointOf(s QuantSpec, i int64) int32 {
	if a.ZeroPoint == nil {
		return s.ZeroPoint()
	}
	return a.ZeroPoint[i]
}
