package rescale

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/pass"
)

// Peaks are the maximum magnitudes of a layer's weight, one per kernel: per pair of
// connected input and output channels.
type Peaks struct {
	of     *Layer
	kernel int64
	max    []float32
}

// Peaks reads the weight. It holds one value per kernel: for matrices that is the
// size of the weight.
func (l *Layer) Peaks(ctx context.Context) (*Peaks, error) {
	// Elements of a kernel have the same channels on both axes: factors change them alike, so that their peak
	// suffices.
	kernel := min(l.in.inner, l.out.inner)
	p := &Peaks{l, kernel, make([]float32, l.Weight.Const.Elems()/kernel)}
	err := pass.Scan(ctx, l.e.step.Eval, l.Weight.Const, func(w []float32, first int64) error {
		for i, v := range w {
			at := (first + int64(i)) / kernel
			p.max[at] = max(p.max[at], float32(math.Abs(float64(v))))
		}
		return nil
	})
	return p, err
}

// Inputs are the maxima by input channel.
func (p *Peaks) Inputs() []float64 { return p.by(p.of.in, p.of.Inputs) }

// Outputs are the maxima by output channel.
func (p *Peaks) Outputs() []float64 { return p.by(p.of.out, p.of.Outputs) }

func (p *Peaks) by(a axis, n int64) []float64 {
	top := make([]float64, n)
	for i, v := range p.max {
		c := a.channel(int64(i) * p.kernel)
		top[c] = max(top[c], float64(v))
	}
	return top
}

// ScaleInputs multiplies peaks as Layer.ScaleInputs multiplies the weight.
func (p *Peaks) ScaleInputs(f []float64) { p.scale(p.of.in, f) }

// ScaleOutputs multiplies peaks as Layer.ScaleOutputs multiplies the weight.
func (p *Peaks) ScaleOutputs(f []float64) { p.scale(p.of.out, f) }

func (p *Peaks) scale(a axis, f []float64) {
	for i := range p.max {
		p.max[i] *= float32(f[a.channel(int64(i)*p.kernel)])
	}
}
