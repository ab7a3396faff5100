package qdq

import (
	"context"
	"io"
)

// correct subtracts the mean quantization error of the layer's outputs from the bias b: the sum over inputs of the
// weight's error times the input's mean (Nagel et al.: Data-Free Quantization Through Weight Equalization and Bias
// Correction, 2019, arXiv:1906.04721, section 4.2; the means are measured here). in are scales, weight and zero points.
func (k *biasEncoding) correct(ctx context.Context, b []float32, in []io.ReaderAt) error {
	var zeros io.ReaderAt
	if len(in) > 2 {
		zeros = in[2]
	}
	was, now, err := k.encoding.FakeQuantize(ctx, in[1], in[0], zeros)
	if err != nil {
		return err
	}
	outs, ins, taps, inputsFirst := k.dims()
	if outs*ins*taps != len(was) || int64(ins)*k.group != int64(len(k.means)) {
		return nil // the input has another number of channels than the weight
	}
	each := outs / int(k.group)
	for o := range outs {
		// An output of a group reads the channels of its group only.
		means := k.means[o/each*ins:][:ins]
		sum := 0.0
		for i, mean := range means {
			at := (o*ins + i) * taps
			if inputsFirst {
				at = i*outs + o
			}
			// The same mean at all places of the kernel: near the padding, where zeros are read, it is an approximation.
			for t := range taps {
				sum += float64((float64(now[at+t]) - float64(was[at+t])) * mean)
			}
		}
		b[o] -= float32(sum)
	}
	return nil
}

// dims are outputs, inputs per output, and elements of each pair; inputsFirst reports that inputs come first.
func (k *biasEncoding) dims() (outs, ins, taps int, inputsFirst bool) {
	shape := k.encoding.Shape
	if len(shape) > 2 {
		taps = 1
		for _, d := range shape[2:] {
			taps *= int(d)
		}
		return int(shape[0]), int(shape[1]), taps, false
	}
	if k.encoding.Transpose { // the weight is stored with outputs first
		return int(shape[0]), int(shape[1]), 1, false
	}
	return int(shape[1]), int(shape[0]), 1, true
}
