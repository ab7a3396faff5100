package palette

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// An importance weights the squared errors of elements by the mean square of the input channel that they are multiplied
// with: the output error without correlations of inputs (SqueezeLLM, Kim et al., ICML 2024, weights by the Hessian's
// diagonal).
type importance struct {
	layer   *rescale.Layer
	squares []float64 // of each input channel
}

// leastImportance is that of channels without input, as a fraction of the mean: dampening, as in GPTQ.
const leastImportance = 0.01

// importances sets those of weights of layers, by the calibration samples.
func (q *Quantizer) importances(ctx context.Context, s *pass.Step, plans []*plan) error {
	if q.Samples == nil || s.Env.DryRun { // sizes do not depend on values
		return nil
	}
	e, of := rescale.New(s), map[*rescale.Layer]*importance{}
	var layers []*rescale.Layer
	for _, p := range plans {
		l, reason := e.Layer(pass.LeafUses(p.weight)[0].Node)
		if !reason.None() || p.weight.Const.DType != ir.Float || l.Weight != p.weight || l.Node.Input(0).Const != nil ||
			l.Node.Graph() != s.Model.Graph {
			continue
		}
		of[l] = &importance{l, make([]float64, l.Inputs)}
		// Set before the samples run, and removed where these give no statistics.
		layers, p.encoding.importance = append(layers, l), of[l]
	}
	useless, err := rescale.VisitInputs(ctx, s, q.Samples, layers, func(l *rescale.Layer, channel int, x []float32) {
		of[l].squares[channel] += kernel.ReduceSumSquare(x)
	})
	for _, p := range plans {
		m := p.encoding.importance
		if m == nil {
			continue
		}
		if reason, is := useless[m.layer]; is { // elements are of equal importance
			s.Ledger.Note(p.weight.Name, reason)
			p.encoding.importance = nil
			continue
		}
		m.normalize()
	}
	return err
}

// normalize divides the sums by their mean.
func (m *importance) normalize() {
	sum := 0.
	for _, s := range m.squares {
		sum += s
	}
	for i, s := range m.squares {
		if m.squares[i] = 1; sum > 0 {
			m.squares[i] = leastImportance + float64(s/sum*float64(len(m.squares)))
		}
	}
}

// write writes the importances of elements from first on.
func (m *importance) write(dst []float32, first int64) {
	for i := range dst {
		dst[i] = float32(m.squares[m.layer.InputChannel(first+int64(i))])
	}
}

// Values are elements of a weight with their importances, nil if these are equal.
type values struct{ x, important []float32 }

func (v values) part(from, to int64) values {
	if v.important != nil {
		v.important = v.important[from:to]
	}
	v.x = v.x[from:to]
	return v
}

// padded are v and zeros, whole blocks.
func (v values) padded(block int64) values {
	zeros := make([]float32, (block-int64(len(v.x))%block)%block)
	v.x = slices.Concat(v.x, zeros)
	if v.important != nil {
		v.important = slices.Concat(v.important, zeros)
	}
	return v
}

func (v values) join(w values) values {
	return values{append(v.x, w.x...), append(v.important, w.important...)}
}
