package qdq

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// sqnrThresholds are tried in turn: minimum ratio of an activation's variance to its quantization noise, in decibels.
// Variance predicts the effect on outputs better than magnitude.
var sqnrThresholds = []float64{0, 24, 27, 30, 33, 36, 40, 50}

// referenceSamples is the number of samples that the output SQNR is measured on.
const referenceSamples = 2

// sensitivityHolds reports whether the output SQNR with quantized activations is at least the minimum. Otherwise it
// raises the threshold for activations, as long as there is a higher one.
func (s *Quantizer) sensitivityHolds(ctx context.Context, step *pass.Step, f *quantizedGraph,
	known map[string]calibrate.Summary) (_ bool, err error) {
	i := slices.Index(sqnrThresholds, s.minSQNR)
	if s.ActivationSQNR <= 0 || s.LoadRanges != "" || step.Env.DryRun || len(f.integer) == 0 || i < 0 ||
		i+1 == len(sqnrThresholds) {
		return true, nil
	}
	// Once for all rounds: outputs of the float model do not depend on the thresholds.
	if s.reference == nil {
		if s.reference, err = s.newReference(ctx, step, f); err != nil {
			return false, err
		}
	}
	db, err := s.reference.lowestSQNR(ctx, s, f, known)
	if err != nil || db >= s.ActivationSQNR {
		return err == nil, err
	}
	// One threshold higher, and another round: the worst values first, until the outputs are good enough.
	s.minSQNR = sqnrThresholds[i+1]
	return false, nil
}

// A reference is the float model's outputs on a few samples.
type reference struct {
	*calibrate.Trial
	outputs      []string
	outputsFloat map[string][][]float32 // by output and sample
}

// newReference runs the float model.
func (s *Quantizer) newReference(ctx context.Context, step *pass.Step, f *quantizedGraph) (*reference, error) {
	t := &reference{outputsFloat: map[string][][]float32{}}
	names := map[string]bool{}
	for _, v := range f.quantizedValues() {
		names[v.Name] = true
	}
	for _, v := range step.Model.Graph.Outputs {
		t.outputs = append(t.outputs, v.Name)
		names[v.Name] = true
	}
	var err error
	if t.Trial, err = s.Data.Try(ctx, step, step.Model, slices.Sorted(maps.Keys(names)), referenceSamples); err != nil {
		return nil, err
	}
	err = t.Run(ctx, func(name string, a *ir.Array) error {
		if slices.Contains(t.outputs, name) && a.Kind == ir.Dense && a.DType == ir.Float {
			t.outputsFloat[name] = append(t.outputsFloat[name], slices.Clone(ir.View[float32](a)))
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// lowestSQNR is the lowest SQNR of an output with fake-quantized activations.
func (t *reference) lowestSQNR(ctx context.Context, s *Quantizer, f *quantizedGraph,
	known map[string]calibrate.Summary) (float64, error) {
	activationRanges := map[string]calibrate.Range{}
	for _, v := range f.quantizedValues() {
		// Other values are copies of rounded ones, on the same levels already.
		if f.scaleSource(v) == v {
			activationRanges[v.Name] = known[v.Name].Range
		}
	}
	signal, noise, runs := map[string]float64{}, map[string]float64{}, map[string]int{}
	err := t.Run(ctx, func(name string, a *ir.Array) error {
		if a.Kind != ir.Dense || a.DType != ir.Float {
			return nil
		}
		x := ir.View[float32](a)
		// In place, so that nodes after it compute with rounded values; before the comparison, as an output may be
		// quantized itself.
		if r, ok := activationRanges[name]; ok {
			s.Activations.fakeQuantize(x, r)
		}
		if want := t.outputsFloat[name]; runs[name] < len(want) && len(want[runs[name]]) == len(x) {
			for i, w := range want[runs[name]] {
				d := float64(w) - float64(x[i])
				signal[name] += float64(w) * float64(w)
				noise[name] += float64(d * d)
			}
		}
		runs[name]++
		return nil
	})
	lowest := math.Inf(1)
	for _, name := range t.outputs {
		if noise[name] > 0 {
			lowest = min(lowest, 10*math.Log10(signal[name]/noise[name]))
		}
	}
	return lowest, err
}
