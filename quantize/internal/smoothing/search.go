package smoothing

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// alphas are the migration strengths that the search tries, besides no smoothing: the fraction of the
// quantization difficulty that moves from activations to weights.
var alphas = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// The minimum gain over no smoothing: larger if it needs a Mul at run time.
const (
	worthFolding = 0.99
	worthMul     = 0.9
)

// balanced is the distance from 1 below which factors are not worth the change: 1 %.
const balanced = 0.01

// A choice is the factors of a group, or the reason why it is unchanged.
type choice struct {
	alpha  float64
	factor []float64
	reason pass.Reason
}

// search finds the alpha of minimum error, see errors.
func (g *group) search(ctx context.Context) (choice, error) {
	weights, err := g.weights(ctx)
	if err != nil {
		return choice{}, err
	}
	fs := [][]float64{slices.Repeat([]float64{1}, int(g.channels()))}
	for _, a := range alphas {
		fs = append(fs, g.seen.factors(weights.largest, a))
	}
	errs, err := g.errors(ctx, fs, weights)
	if err != nil {
		return choice{}, err
	}
	best := 0
	for i := range errs {
		if errs[i] < errs[best] {
			best = i
		}
	}
	worth := worthFolding
	if g.fold == nil {
		worth = worthMul
	}
	if best == 0 || errs[best] > worth*errs[0] {
		return choice{reason: pass.Reason{Code: pass.NoGain, Detail: "expected error at any alpha"}}, nil
	}
	return choose(alphas[best-1], fs[best]), nil
}

// choose accepts the factors f if they are finite and not all near 1.
func choose(alpha float64, f []float64) choice {
	farthest := 0.0
	for _, x := range f {
		farthest = max(farthest, math.Abs(math.Log(x)))
	}
	switch {
	case !(farthest <= math.MaxFloat64):
		return choice{reason: pass.Reason{Code: pass.NotFinite}}
	// Not worth a change of the model, and a second run changes nothing.
	case farthest < balanced:
		return choice{reason: pass.Reason{Code: pass.Balanced}}
	}
	return choice{alpha: alpha, factor: f}
}

// at is the choice for one alpha.
func (g *group) at(ctx context.Context, alpha float64) (choice, error) {
	weights, err := g.weights(ctx)
	if err != nil {
		return choice{}, err
	}
	return choose(alpha, g.seen.factors(weights.largest, alpha)), nil
}

// sizes are the maximum magnitudes and sums of squares of a group's weights, by input channel.
type sizes struct{ largest, squares []float64 }

func (g *group) weights(ctx context.Context) (sizes, error) {
	s := sizes{make([]float64, g.channels()), make([]float64, g.channels())}
	for _, l := range g.layers {
		largest, squares, err := l.InputSizes(ctx)
		if err != nil {
			return s, err
		}
		for i := range largest {
			s.largest[i] = max(s.largest[i], largest[i])
			s.squares[i] += squares[i]
		}
	}
	return s, nil
}

// errors are the expected squared errors of the group's outputs, relative to its rows, times 12, with
// dynamic 8-bit quantization of its value and 8-bit weights per output channel, assuming uniform
// noise in both factors of the product,
//
//	Σ step(x)² · Σ W² + Σ x² · Σ step(W)².
func (g *group) errors(ctx context.Context, fs [][]float64, w sizes) ([]float64, error) {
	errs := make([]float64, len(fs))
	steps := make([]float64, len(fs))
	for _, l := range g.layers {
		peaks, err := l.OutputPeaks(ctx, fs)
		if err != nil {
			return nil, err
		}
		for k, ps := range peaks {
			for _, p := range ps {
				// One scale for each output channel, the error of which is in all of its weights.
				steps[k] += p / 127 * p / 127
			}
		}
	}
	for k, f := range fs {
		inputs, outputs := 0.0, 0.0
		for i, v := range f {
			inputs += w.squares[i] * v * v
			outputs += g.seen.squares[i] / (v * v)
		}
		errs[k] = g.seen.noise(f)*inputs + outputs*steps[k]
	}
	return errs, nil
}

// factors are max|x|^alpha / max|W|^(1-alpha) by channel (SmoothQuant, equation 4), with a geometric mean of 1.
// Channels far below the others are raised to a minimum: values absent from n rows may occur in the next n.
func (s *statistics) factors(w []float64, alpha float64) []float64 {
	const least = 1e-4
	x := s.largest
	f, mean := make([]float64, len(x)), 0.0
	topX, topW := slices.Max(x), slices.Max(w)
	if topX == 0 || topW == 0 {
		return slices.Repeat([]float64{1}, len(x))
	}
	for i := range f {
		f[i] = alpha*math.Log(max(x[i], topX*least, topX/float64(s.rows))) - (1-alpha)*math.Log(max(w[i], topW*least))
		mean += f[i] / float64(len(f))
	}
	for i := range f {
		f[i] = math.Exp(f[i] - mean)
	}
	return f
}
