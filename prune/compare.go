package prune

import (
	"context"
	"encoding/binary"
	"io"
	"math"

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

// maxTrial is the size up to which layers are pruned in trials. Of larger ones, and without data, the comparison is that of the paper: outputs
// of more weights differ less by chance, and those of random inputs are no evidence.
const maxTrial = 256 << 20

// decide replaces auto by the best comparison of candidates for layers, of which the first is that of the paper, and reports whether it did.
func (s *sampled) decide(ctx context.Context, layers []*layer, candidates []string) (bool, error) {
	if !isAuto(*s.compare) {
		return false, nil
	}
	bytes := int64(0)
	for _, l := range layers {
		bytes += l.before.Bytes()
	}
	if len(candidates) == 1 || bytes > maxTrial || s.data.Path == "" {
		*s.compare = candidates[0]
		return true, nil
	}
	return true, s.best(ctx, layers, candidates)
}

// holdOut is the interval of samples that trials of methods which fit values to samples hold out, as they overfit. Norms do not: trials of other
// methods measure all samples, and depend less on single ones.
const holdOut = 4

// heldOut reports whether trials measure outputs on a sample instead of observing it. Of fewer samples than holdOut trials do both on all.
func (s *sampled) heldOut(sample int) bool {
	return s.trial && s.fits && s.samples >= holdOut && sample%holdOut == holdOut-1
}

// measured reports whether trials measure outputs on a sample.
func (s *sampled) measured(sample int) bool {
	return s.heldOut(sample) || !s.fits || s.samples < holdOut
}

// best sets the comparison with the highest output SQNR on the measured samples, after a trial of each in the whole model; the first of equal ones.
func (s *sampled) best(ctx context.Context, layers []*layer, candidates []string) error {
	t := &trials{sampled: s}
	best, highest := candidates[0], math.Inf(-1)
	for _, c := range candidates {
		*s.compare = c
		ratio, err := t.prune(ctx, "compare "+c, layers)
		if err != nil {
			return err
		}
		if ratio > highest {
			best, highest = c, ratio
		}
	}
	*s.compare = best
	return nil
}

// trials prune layers of a model and measure the change of its outputs.
type trials struct {
	*sampled
	dense []map[string]io.ReaderAt // outputs of the samples; nil before the first trial
}

// prune is the lowest ratio of signal and noise of an output after layers are pruned, which then have their elements again. An interrupted run
// left it under the name of the trial.
func (t *trials) prune(ctx context.Context, trial string, layers []*layer) (float64, error) {
	b, err := ir.Once(ctx, t.step.Env.Journal, t.step.Unit(trial), func() ([]byte, error) {
		ratio, err := t.measure(ctx, layers)
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(ratio)), err
	})
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

func (t *trials) measure(ctx context.Context, layers []*layer) (float64, error) {
	if t.dense == nil {
		err := t.walk(ctx, nil, func(outputs map[string]*ir.Array) error {
			kept, err := t.keep(ctx, outputs)
			t.dense = append(t.dense, kept)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	e, sample := outputErrors{}, -1
	err := t.walk(ctx, layers, func(outputs map[string]*ir.Array) error {
		sample++
		return e.add(t.dense[sample], outputs)
	})
	for _, l := range layers {
		l.v.SetConst(l.before)
	}
	return e.lowest(), err
}

// keep stores the floating-point outputs of a sample, larger ones in temporary files.
func (s *sampled) keep(ctx context.Context, outputs map[string]*ir.Array) (map[string]io.ReaderAt, error) {
	kept := map[string]io.ReaderAt{}
	for name, a := range outputs {
		x, ok := hessian.Floats(a)
		if !ok {
			continue
		}
		ts, err := layerwise.Keep(ctx, s.step.Eval, name, kernel.Bytes(x))
		if err != nil {
			return nil, err
		}
		kept[name] = ts[0].Source.(ir.Span).R
	}
	return kept, nil
}

// outputErrors are the sums of squares of each output, and of its error.
type outputErrors map[string]*struct{ signal, noise float64 }

// add adds the outputs of a sample, whose values before pruning are kept.
func (e outputErrors) add(before map[string]io.ReaderAt, outputs map[string]*ir.Array) error {
	for name, r := range before {
		got, ok := hessian.Floats(outputs[name])
		want := make([]float32, len(got))
		if err := ir.ReadFull(r, kernel.Bytes(want), 0); err != nil || !ok {
			return err
		}
		if e[name] == nil {
			e[name] = &struct{ signal, noise float64 }{}
		}
		for i, v := range want {
			d := float64(v) - float64(got[i])
			e[name].signal += float64(float64(v) * float64(v))
			e[name].noise += float64(d * d)
		}
	}
	return nil
}

// lowest is the lowest ratio of signal and noise of an output.
func (e outputErrors) lowest() float64 {
	lowest := math.Inf(1)
	for _, o := range e {
		if !(o.noise <= 0) { // NaN is the worst
			lowest = min(lowest, o.signal/o.noise)
		}
	}
	return lowest
}
