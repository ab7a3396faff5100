package quantize

import "github.com/mcompress/mcompress/pass"

// Calibration is the group of options about calibration samples.
type Calibration = pass.Calibration

// BiasCorrection is the group of the option of that name.
type BiasCorrection struct {
	// BiasCorrection subtracts the mean quantization error of each output channel, measured on calibration samples, from biases.
	BiasCorrection bool `flag:"bias-correction" usage:"subtract the mean quantization error of each output channel, measured on calibration samples, from biases"`
}
