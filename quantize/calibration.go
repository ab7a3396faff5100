package quantize

import (
	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/pass"
)

// Calibration is the group of options about calibration samples. Without a path, methods use random samples.
type Calibration struct {
	pass.Samples
	// CalibrationSamples is the number of samples that the model runs on, spread evenly over the data; 0 means all.
	CalibrationSamples *int `flag:"calibrate" default:"128" usage:"'number' of calibration samples, spread evenly over the data; 0 for all"`
}

// data is the calibration data; lenient passes NaN in activations on.
func (c Calibration) data(lenient bool) calibrate.Data {
	d := calibrate.Data{Source: dataset.Source{Samples: c.Samples}, Lenient: lenient}
	if c.CalibrationSamples != nil {
		d.Most = *c.CalibrationSamples
	}
	return d
}

// BiasCorrection is the group of the option of that name.
type BiasCorrection struct {
	// BiasCorrection subtracts the mean quantization error of each output channel, measured on calibration samples, from biases.
	BiasCorrection bool `flag:"bias-correction" usage:"subtract the mean quantization error of each output channel, measured on calibration samples, from biases"`
}
