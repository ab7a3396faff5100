package biascorrection

import (
	"context"
	"fmt"

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

// correct subtracts the mean quantization error of outputs from biases: the weight's error times the input's mean (Nagel et al.,
// Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019, section 4.2), which is measured on
// calibration samples. It runs before weights are replaced, with the restored ones.
func correct(ctx context.Context, s *pass.Step, d *calibrate.Data, restored map[*ir.Value]*ir.Tensor) error {
	e := rescale.New(s)
	by := map[string][]*layer{}
	var all []*layer
	var names []string
	for n := range s.Model.Graph.Nodes() {
		l, reason := e.Layer(n)
		if !reason.None() || l.Node != n || restored[l.Weight] == nil || n.Input(0).Const != nil || l.Weight.Const.DType != ir.Float {
			continue
		}
		k := &layer{Layer: l, restored: restored[l.Weight], sums: make([]float64, l.Inputs)}
		name := n.Input(0).Name
		if by[name] == nil {
			names = append(names, name)
		}
		by[name], all = append(by[name], k), append(all, k)
	}
	if len(all) == 0 {
		return nil
	}
	err := d.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		for _, k := range by[name] {
			if err := k.add(a); err != nil {
				return fmt.Errorf("value %q: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := pass.Parallel(ctx, s.Env.Workers, len(all), func(ctx context.Context, i int) error { return all[i].measure(ctx) }); err != nil {
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

// add adds one run's input of the layer.
func (k *layer) add(a *ir.Array) error {
	axis := len(a.Shape) - 1
	if k.Spatial() {
		axis = 1
	}
	if a.Kind != ir.Dense || a.DType != ir.Float || axis < 0 || axis >= len(a.Shape) || a.Shape[axis] != k.Inputs {
		return fmt.Errorf("it is %s, and not floats of %d channels", a, k.Inputs)
	}
	inner := int((ir.Spec{Shape: a.Shape[axis+1:]}).Elems())
	x := ir.View[float32](a)
	for i := 0; inner > 0 && i < len(x); i += inner {
		sum := 0.0
		for _, v := range x[i : i+inner] {
			sum += float64(v)
		}
		k.sums[i/inner%len(k.sums)] += sum
	}
	k.seen += float64(len(x) / len(k.sums))
	return nil
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
	is, err := k.Response(ctx, k.restored, means)
	if err != nil {
		return err
	}
	for i := range k.shift {
		k.shift[i] = was[i] - is[i]
	}
	return nil
}
