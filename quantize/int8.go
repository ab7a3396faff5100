package quantize

import "github.com/mcompress/mcompress/quantize/internal/spec"

// int8Weights is the group of options about 8-bit weights.
type int8Weights struct {
	// PerTensor is one scale for the whole tensor instead of one for each output channel.
	PerTensor bool `flag:"per-tensor" usage:"one scale for the whole tensor; without it one for each output channel"`
	// Asymmetric quantizes each channel's own range with a zero point; without it the zero point is the middle of the
	// levels.
	Asymmetric bool `flag:"asymmetric" usage:"a zero point for each channel, from its minimum and maximum; without it weights are symmetric"`
	// WeightType is the quantized data type: int8 or uint8.
	WeightType string `flag:"weight-type" default:"int8" enum:"int8,uint8" usage:"quantized data 'type' of weights: int8 or uint8"`
}

func (o int8Weights) spec(reduceRange bool) spec.QuantSpec {
	return spec.QuantSpec{Unsigned: o.WeightType == "uint8", Symmetric: !o.Asymmetric, ReduceRange: reduceRange,
		PerTensor: o.PerTensor}
}
