package distill

import (
	"bytes"

	"github.com/mcompress/mcompress/ir"
)

// An average is an exponential moving average of weights and running statistics (Polyak averaging): a = d·a +
// (1-d)·w after each step, where d is --ema, but at most (1+step)/(10+step), so that the average of few steps
// forgets the start. Steps are those of the training itself, also if it begins within a schedule with rewound weights.
type average struct {
	decay  float64
	arrays []*ir.Array // in the order of parameters.each
}

// newAverage returns the average of the current values, nil for decay 0.
func newAverage(decay float64, ps *parameters) *average {
	if decay == 0 {
		return nil
	}
	a := &average{decay: decay}
	_ = ps.each(func(w *ir.Array) error {
		a.arrays = append(a.arrays, &ir.Array{DType: w.DType, Shape: w.Shape, Data: bytes.Clone(w.Data)})
		return nil
	})
	return a
}

// list returns the arrays. a may be nil.
func (a *average) list() []*ir.Array {
	if a == nil {
		return nil
	}
	return a.arrays
}

// addStep adds the values after a step. a may be nil.
func (a *average) addStep(ps *parameters, step int) {
	if a == nil {
		return
	}
	rest := float32(1 - min(a.decay, (1+float64(step))/(10+float64(step))))
	a.eachPair(ps, func(x, w []float32) {
		for i := range x {
			x[i] += float32(rest * (w[i] - x[i])) // no fused multiply-add: bit-identical on all CPUs
		}
	})
}

// swap exchanges the average with the current values.
func (a *average) swap(ps *parameters) {
	a.eachPair(ps, func(x, w []float32) {
		for i := range x {
			x[i], w[i] = w[i], x[i]
		}
	})
}

func (a *average) eachPair(ps *parameters, f func(x, w []float32)) {
	i := 0
	_ = ps.each(func(w *ir.Array) error {
		f(ir.View[float32](a.arrays[i]), ir.View[float32](w))
		i++
		return nil
	})
}
