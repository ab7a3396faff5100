package quantize

import (
	"bytes"
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// correct takes the mean of what rounding the weight adds to the layer's outputs out of the bias b: the sum over inputs of
// the weight's error times the input's mean (Nagel et al.: Data-Free Quantization Through Weight Equalization and Bias
// Correction, 2019, arXiv:1906.04721, section 4.2; the means are measured here). in are scales, weight and zero points.
func (k *bias) correct(ctx context.Context, b []float32, in []io.ReaderAt) error {
	was, now, err := k.rounded(ctx, in)
	if err != nil {
		return err
	}
	outs, ins, taps, turned := k.extents()
	if outs*ins*taps != len(was) || int64(ins)*k.group != int64(len(k.means)) {
		return nil // its input has not the channels that it says
	}
	each := outs / int(k.group)
	for o := range outs {
		means := k.means[o/each*ins:][:ins]
		sum := 0.0
		for i, mean := range means {
			at := (o*ins + i) * taps
			if turned {
				at = i*outs + o
			}
			for t := range taps {
				sum += float64((float64(now[at+t]) - float64(was[at+t])) * mean)
			}
		}
		b[o] -= float32(sum)
	}
	return nil
}

// extents are outputs, inputs of one of them, and elements for each pair; turned says that inputs come first.
func (k *bias) extents() (outs, ins, taps int, turned bool) {
	shape := k.cd.shape
	if len(shape) > 2 {
		taps = 1
		for _, d := range shape[2:] {
			taps *= int(d)
		}
		return int(shape[0]), int(shape[1]), taps, false
	}
	if k.cd.transpose { // the weight is stored with outputs first
		return int(shape[0]), int(shape[1]), 1, false
	}
	return int(shape[1]), int(shape[0]), 1, true
}

// rounded is the weight, and what its codes stand for, in the order of the weight.
func (k *bias) rounded(ctx context.Context, in []io.ReaderAt) (was, now []float32, err error) {
	cd := *k.cd
	cd.transpose = false
	parts := []io.ReaderAt{nil, in[0], nil}
	if len(in) > 2 {
		parts[2] = in[2]
	}
	a, err := cd.readAffine(parts)
	if err != nil {
		return nil, nil, err
	}
	r := newReader(cd.buffers, in[1], cd.t.DType, cd.g, 1)
	defer r.close()
	var codes, floats bytes.Buffer
	if err := cd.write(ctx, r, &codes, a); err != nil {
		return nil, nil, err
	}
	if err := cd.dequantize(ctx, bytes.NewReader(codes.Bytes()), &floats, a); err != nil {
		return nil, nil, err
	}
	raw := make([]float32, cd.t.Elems())
	return raw, kernel.Words[float32](floats.Bytes()), ir.ReadFull(in[1], kernel.Bytes(raw), 0)
}
