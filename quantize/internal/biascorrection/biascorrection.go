package biascorrection

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Correction is the bias correction of a method.
type Correction struct {
	Enabled bool
	Data    *calibrate.Data
}

// Apply corrects biases, if enabled, for the encodings of weights.
func (b *Correction) Apply(ctx context.Context, s *pass.Step, encodings map[*ir.Value]spec.Encoding) error {
	if !b.Enabled {
		return nil
	}
	restored := map[*ir.Value]*ir.Tensor{}
	for v, cd := range encodings {
		// Lazy: weights are quantized once more when the mean error is computed, and none is held.
		restored[v] = cd.Restore(cd.Recipe().Derive())
	}
	return correct(ctx, s, b.Data, restored)
}

// A layer is a layer's weight, the restored weight, and statistics of the layer's input.
type layer struct {
	*rescale.Layer
	restored *ir.Tensor
	sums     []float64 // of each input channel
	seen     float64   // how many elements each is the sum of
	shift    []float64 // mean quantization error of each output channel
}

// correct subtracts the mean quantization error of outputs from biases: the weight's error times the input's mean
// (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019, section 4.2), which
// is measured on calibration samples. It runs before weights are replaced, with the restored ones.
func correct(ctx context.Context, s *pass.Step, d *calibrate.Data, restored map[*ir.Value]*ir.Tensor) error {
	e := rescale.New(s)
	of := map[*rescale.Layer]*layer{}
	var all []*layer
	var layers []*rescale.Layer
	for n := range s.Model.Graph.Nodes() {
		l, reason := e.Layer(n)
		if !reason.None() || l.Node != n || restored[l.Weight] == nil || n.Input(0).Const != nil ||
			l.Weight.Const.DType != ir.Float {
			continue
		}
		of[l] = &layer{Layer: l, restored: restored[l.Weight], sums: make([]float64, l.Inputs)}
		all, layers = append(all, of[l]), append(layers, l)
	}
	useless, err := rescale.VisitInputs(ctx, s, d, layers, func(l *rescale.Layer, channel int, x []float32) {
		of[l].add(channel, x)
	})
	if err != nil {
		return err
	}
	// A layer whose inputs give no means keeps its bias, and the ledger has the reason.
	all = slices.DeleteFunc(all, func(k *layer) bool {
		reason, is := useless[k.Layer]
		if is {
			s.Ledger.Note(k.Weight.Name, reason)
		}
		return is
	})
	if err := pass.Parallel(ctx, s.Env.Workers, len(all), func(ctx context.Context, i int) error {
		return all[i].measure(ctx)
	}); err != nil {
		return err
	}
	for _, k := range all {
		if err := k.AddBias(ctx, k.shift); err != nil {
			return err
		}
	}
	e.Report(pass.BiasCorrected, "")
	return nil
}

// add adds elements of an input channel.
func (k *layer) add(channel int, x []float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	k.sums[channel] += sum
	k.seen += float64(len(x)) / float64(len(k.sums))
}

// measure computes the shift of the bias.
func (k *layer) measure(ctx context.Context) error {
	k.shift = make([]float64, k.Outputs)
	if k.seen == 0 {
		return nil
	}
	means := make([]float64, len(k.sums))
	for i, s := range k.sums {
		means[i] = s / k.seen
	}
	was, err := k.Response(ctx, k.Weight.Const, means)
	if err != nil {
		return err
	}
	// Layers are linear, so that the mean error of outputs is the output of the error at the mean input.
	is, err := k.Response(ctx, k.restored, means)
	if err != nil {
		return err
	}
	for i := range k.shift {
		k.shift[i] = was[i] - is[i]
	}
	return nil
}
