package prune

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/calibrate/layerwise"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// The comparisons: which elements the smallest are chosen among. Magnitudes are compared in the whole weight.
const (
	autoCompare = "auto" // the best of the others
	byRow       = "row"
	byBlock     = "block"
	byLayer     = "layer"
)

func isAuto(compare string) bool { return compare == "" || compare == autoCompare }

// maxTrial is the size up to which layers are pruned in trials. Of larger ones, and without data, the comparison is
// that of the paper: outputs of more weights differ less by chance, and those of random inputs are no evidence.
const maxTrial = 256 << 20

// decide replaces auto by the best comparison for layers, and reports whether it did.
func (s *samplePass) decide(ctx context.Context, layers []*layer) (bool, error) {
	if !isAuto(*s.compare) {
		return false, nil
	}
	bytes := int64(0)
	for _, l := range layers {
		bytes += l.before.Bytes()
	}
	candidates := s.candidates(layers)
	if len(candidates) == 1 || bytes > maxTrial || s.data.Path == "" {
		*s.compare = s.paper
		return true, nil
	}
	return true, s.chooseBest(ctx, layers, candidates)
}

// holdOut is the interval of samples that trials of methods which fit values to samples hold out, as they overfit.
// Norms do not: trials of other methods measure all samples, and depend less on single ones.
const holdOut = 4

// isHeldOut reports whether trials measure outputs on a sample instead of observing it. Of fewer samples than holdOut
// trials do both on all.
func (s *samplePass) isHeldOut(sample int) bool {
	return s.trial && s.fits && s.samples >= holdOut && sample%holdOut == holdOut-1
}

// isTrialSample reports whether trials measure outputs on a sample.
func (s *samplePass) isTrialSample(sample int) bool {
	return s.isHeldOut(sample) || !s.fits || s.samples < holdOut
}

// chooseBest sets the comparison with the highest output SQNR on the measured samples, after a trial of each in the
// whole model. One of candidates replaces those before it only if its output error is lower by more than the
// standard error of the difference: a few samples have most of the error, and the next ones others.
func (s *samplePass) chooseBest(ctx context.Context, layers []*layer, candidates []string) error {
	t := &trials{samplePass: s}
	best, lowest := "", []float64(nil)
	err := ir.Each(s.step.Env.Journal, make([]int64, len(candidates)), func(i int, mine bool) error {
		*s.compare = candidates[i]
		noise, err := t.prune(ctx, "compare "+candidates[i], mine, layers)
		if err == nil && (best == "" || isLower(noise, lowest)) {
			best, lowest = candidates[i], noise
		}
		return err
	})
	*s.compare = best
	return err
}

// trials prune layers of a model and measure the change of its outputs.
type trials struct {
	*samplePass
	dense []map[string]*ir.Tensor // outputs of the samples; nil before the first trial
}

// prune is the highest error of an output by sample after layers are pruned, which then have their elements again. An
// interrupted run left it under the name of the trial.
func (t *trials) prune(ctx context.Context, trial string, mine bool, layers []*layer) ([]float64, error) {
	b, err := ir.Once(ctx, t.step.Env.Journal, t.step.Unit(trial), mine, func() ([]byte, error) {
		noise, err := t.pruneAndMeasure(ctx, layers)
		return kernel.Bytes(noise), err
	})
	if err != nil || len(b) == 0 {
		return nil, err
	}
	noise := make([]float64, len(b)/8)
	copy(kernel.Bytes(noise), b)
	return noise, nil
}

// pruneAndMeasure prunes layers and measures the outputs.
func (t *trials) pruneAndMeasure(ctx context.Context, layers []*layer) ([]float64, error) {
	if t.dense == nil {
		err := t.walk(ctx, nil, func(outputs map[string]*ir.Array) error {
			kept, err := t.storeOutputs(ctx, outputs)
			t.dense = append(t.dense, kept)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	e, sample := outputErrors{}, -1
	err := t.walk(ctx, layers, func(outputs map[string]*ir.Array) error {
		sample++
		return e.add(t.dense[sample], outputs)
	})
	for _, l := range layers {
		// After an error, too: the next trial, and the step itself, start from the dense weights.
		l.v.SetConst(l.before)
	}
	return e.highest(), err
}

// storeOutputs stores the floating-point outputs of a sample, larger ones in temporary files.
func (s *samplePass) storeOutputs(ctx context.Context, outputs map[string]*ir.Array) (map[string]*ir.Tensor, error) {
	kept := map[string]*ir.Tensor{}
	for name, a := range outputs {
		x, ok := hessian.Floats(a)
		if !ok {
			continue
		}
		ts, err := layerwise.Keep(ctx, s.step.Eval, name, kernel.Bytes(x))
		if err != nil {
			return nil, err
		}
		kept[name] = ts[0]
	}
	return kept, nil
}

// outputErrors are the sum of squares of each output, and those of its error by sample.
type outputErrors map[string]*outputError

type outputError struct {
	signal float64
	noise  []float64
}

// add adds the outputs of a sample, whose values before pruning are kept.
func (e outputErrors) add(before map[string]*ir.Tensor, outputs map[string]*ir.Array) error {
	for name, t := range before {
		got, ok := hessian.Floats(outputs[name])
		want := make([]float32, t.Bytes()/4)
		if err := ir.ReadFull(t.Source.(ir.Span).R, kernel.Bytes(want), 0); err != nil || !ok {
			return err
		}
		// A size that depends on values may differ: what one side lacks counts as zeros.
		n := max(len(want), len(got))
		want, got = slices.Concat(want, make([]float32, n-len(want))), slices.Concat(got, make([]float32, n-len(got)))
		if e[name] == nil {
			e[name] = &outputError{}
		}
		o, noise := e[name], 0.0
		for i, v := range want {
			d := float64(v) - float64(got[i])
			o.signal += float64(float64(v) * float64(v))
			noise += float64(d * d)
		}
		o.noise = append(o.noise, noise)
	}
	return nil
}

// highest are the errors by sample of the output with the lowest SQNR, as fractions of its sum of squares; nil if no
// output has an error.
func (e outputErrors) highest() (highest []float64) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		var relative []float64
		for _, v := range e[name].noise {
			relative = append(relative, v/max(e[name].signal, math.SmallestNonzeroFloat64))
		}
		if total(relative) > total(highest) {
			highest = relative
		}
	}
	return highest
}

// total is the error of all samples; NaN is the highest.
func total(noise []float64) (sum float64) {
	for _, v := range noise {
		sum += v
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// isLower reports whether a is lower than b by more than the standard error of the difference.
func isLower(a, b []float64) bool {
	sum, n := total(b)-total(a), float64(max(len(a), len(b)))
	if math.IsInf(sum, 0) || math.IsNaN(sum) || n < 2 {
		return sum > 0
	}
	variance := 0.0
	for i := range int(n) {
		d := -sum / n
		if b != nil {
			d += b[i]
		}
		if a != nil {
			d -= a[i]
		}
		variance += float64(d*d) / (n - 1)
	}
	return sum > math.Sqrt(n*variance)
}
