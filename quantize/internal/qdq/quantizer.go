package qdq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/batchnorm"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// qdqForm is quantized weights of integer kernels, with quantized activations.
var qdqForm = pass.Form{Name: "qdq"}

// int16Opset is the first one whose QuantizeLinear supports 16 bits.
const int16Opset = 21

// A Quantizer is the method with its options.
type Quantizer struct {
	Spec                   spec.QuantSpec // of weights
	Activations            ActivationType
	FloatBias              bool
	NoBiasCorrection       bool
	ActivationSQNR         float64 // minimum at outputs, in decibels
	LoadRanges, SaveRanges string
	Observer               calibrate.Observer
	Data                   calibrate.Data

	buffers    *spec.BufferPool
	floatNodes map[*ir.Node]bool // nodes kept in float
	unfit      map[*ir.Node]bool // those with a weight that no scale represents
	minSQNR    float64           // in decibels: values with less are kept in float
	reference  *reference
}

// Run implements pass.Options.
func (s *Quantizer) Run(ctx context.Context, step *pass.Step) error {
	if err := s.Observer.Check(); err != nil {
		return err
	}
	s.buffers, s.floatNodes, s.minSQNR = spec.NewBufferPool(), map[*ir.Node]bool{}, 0
	s.unfit = map[*ir.Node]bool{}
	// First: a normalization has no integer kernel, so that one between two layers would make them exchange floats.
	unfolded, err := batchnorm.Fold(ctx, step)
	if err != nil {
		return err
	}
	for _, u := range unfolded {
		for _, v := range u.Constants {
			step.Ledger.Skip(v, pass.Consumers(v), u.Reason)
		}
	}
	// Listed before nodes are quantized, which adds scales and float biases: these are no weights to store.
	rest := pass.Weights(step.Model)
	if err := s.quantizeNodes(ctx, step); err != nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(v *ir.Value) bool { return v.Removed() || v.Const == nil })
	dense := s.Spec // of weights that no integer kernel reads
	// OpenVINO computes recurrent layers with zero points wrongly next to quantized activations: -0.1 dB for
	// byte_bidi_lstm.
	if !step.Env.Target.Can(pass.ShiftedRecurrent) {
		dense.Unsigned, dense.Symmetric = false, true
	}
	return (&weightonly.Quantizer{Spec: dense}).Store(ctx, step, rest)
}

// quantizeNodes quantizes the activations of all nodes that support it.
func (s *Quantizer) quantizeNodes(ctx context.Context, step *pass.Step) error {
	if len(s.layersOf(step)) == 0 {
		return nil
	}
	var no *opset.Unsupported
	if err := s.raiseOpset(ctx, step); errors.As(err, &no) {
		step.Ledger.Note("", weights.NotRaised(no))
		return nil
	} else if err != nil {
		return err
	}
	// Before values are chosen, as a merged Add is no operator of its own any more.
	s.mergeBiases(step)
	f, known, err := s.calibrate(ctx, step)
	if s.reference != nil {
		err = errors.Join(err, s.reference.Close())
		s.reference = nil
	}
	if err != nil {
		return err
	}
	if s.SaveRanges != "" { // also if they leave no layer: a run with the file keeps the same ones in float
		if err := calibrate.Save(step, s.SaveRanges, s.minSQNR, known); err != nil {
			return err
		}
	}
	if len(f.layers) == 0 {
		return nil
	}
	if s.Activations.is16Bit() {
		step.Ledger.Note("", pass.Reason{Code: pass.NoKernel,
			Detail: fmt.Sprintf("integer kernels of %s for %s activations, computed in float", pass.MeasuredRuntime,
				s.Activations.DType)})
	}
	return s.emit(step, f, known)
}

func (s *Quantizer) raiseOpset(ctx context.Context, step *pass.Step) error {
	to := int64(weights.DequantizeOpset)
	if s.Activations.is16Bit() {
		to = int16Opset
	}
	if !weights.OpsetBelow(step.Model, to) {
		return nil
	}
	return weights.RaiseOpset(ctx, step, to)
}

// calibrate chooses the nodes and their ranges. Nodes with a value without range are kept in float.
func (s *Quantizer) calibrate(ctx context.Context,
	step *pass.Step) (*quantizedGraph, map[string]calibrate.Summary, error) {
	known := map[string]calibrate.Summary{}
	for {
		// Each round keeps more nodes in float than the one before, so that there is an end; then the graph is built
		// anew, as their neighbours may have lost what connected them. Only a range with a free zero point can end at 0,
		// as Relu does.
		f := newQuantizedGraph(step, s.layersOf(step), s.floatNodes, !s.Activations.Symmetric)
		// Ranges of earlier rounds hold, as the model that is observed is the float one: a round observes what is new.
		var missing []string
		for _, v := range f.observedValues() {
			if _, ok := known[v.Name]; !ok {
				missing = append(missing, v.Name)
			}
		}
		slices.Sort(missing)
		reasons, err := s.measureRanges(ctx, step, slices.Compact(missing), known)
		if err != nil {
			return nil, nil, err
		}
		s.findCoarse(f, known, reasons)
		if s.keepFloat(step, f, reasons) {
			continue
		}
		// After ranges, as the scale of a bias is that of the activation times that of the weight; before the
		// measurement of outputs, which is the most expensive check.
		if again, err := s.precheck(ctx, step, f, known); err != nil {
			return nil, nil, err
		} else if again {
			continue
		}
		if good, err := s.sensitivityHolds(ctx, step, f, known); good || err != nil {
			return f, known, err
		}
	}
}

// measureRanges adds summaries of the named values, and returns why some have no range.
func (s *Quantizer) measureRanges(ctx context.Context, step *pass.Step, names []string,
	known map[string]calibrate.Summary) (map[string]pass.Reason, error) {
	reasons := map[string]pass.Reason{}
	switch {
	case len(names) == 0:
		return reasons, nil
	case s.LoadRanges != "":
		return reasons, s.loadRanges(names, known)
	case step.Env.DryRun: // sizes hardly depend on ranges
		for _, name := range names {
			known[name] = calibrate.Summary{Range: calibrate.Range{Min: -1, Max: 1}}
		}
		return reasons, nil
	}
	o, channels := s.Observer, calibrate.Channels{}
	err := s.Data.Each(ctx, step, step.Model, names, func(name string, a *ir.Array) error {
		channels.Visit(name, a)
		return o.Visit(name, a)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		// The number of steps is a parameter: entropy ranges depend on it.
		r, reason := o.Range(name, int(s.Activations.max-s.Activations.min))
		if reason != "" {
			reasons[name] = pass.Reason{Code: reason, Detail: name}
			continue
		}
		known[name] = calibrate.Summary{Range: r, Means: channels.Means(name), Variance: channels.Variance(name)}
	}
	return reasons, nil
}

// findCoarse adds why values are too coarse in the quantized data type.
func (s *Quantizer) findCoarse(f *quantizedGraph, known map[string]calibrate.Summary, reasons map[string]pass.Reason) {
	for _, v := range f.quantizedValues() {
		name := f.scaleSource(v).Name
		k, ok := known[name]
		if !ok {
			continue
		}
		scale, _, normal := s.Activations.qparams(k.Range)
		// Rounding errors are uniform within a scale, with the variance scale²/12. The variance of the activation, not
		// its power: around the means of channels it predicts the effect on outputs (rank correlations of 0.71 to 0.82
		// on three detectors, by power 0.40 to 0.60).
		db := 10 * math.Log10(k.Variance/(float64(scale)*float64(scale)/12))
		switch {
		case !normal:
			reasons[name] = pass.Reason{Code: pass.FloatNoScale,
				Detail: fmt.Sprintf("%s, range from %g to %g", name, k.Min, k.Max)}
		case k.Variance > 0 && db < s.minSQNR:
			reasons[name] = pass.Reason{Code: pass.FloatSQNR, Detail: fmt.Sprintf("%s, SQNR %.1f dB", name, db)}
		}
	}
}

func (s *Quantizer) loadRanges(names []string, known map[string]calibrate.Summary) error {
	file, err := calibrate.Load(s.LoadRanges)
	if err != nil {
		return err
	}
	// The threshold of the run that saved them, so that the same values are kept in float.
	s.minSQNR = file.SQNR
	for _, name := range names {
		v, ok := file.Values[name]
		if !ok {
			return fmt.Errorf("%s: it has no range for value %q: ranges are of one model; --save-ranges writes them",
				s.LoadRanges, name)
		}
		known[name] = v
	}
	return nil
}

// keepFloat removes the nodes that compute or read values without range. It reports whether there are any.
func (s *Quantizer) keepFloat(step *pass.Step, f *quantizedGraph, reasons map[string]pass.Reason) bool {
	some := false
	for n := range step.Model.Graph.Nodes() {
		if !f.integer[n] {
			continue
		}
		for _, v := range slices.Concat(f.quantizedInputs(n), f.quantizedOutputs(n)) {
			if reason := reasons[f.scaleSource(v).Name]; !reason.None() && !s.floatNodes[n] {
				s.floatNodes[n], some = true, true
				step.Ledger.Note(v.Name, reason.At(n))
			}
		}
	}
	return some
}
