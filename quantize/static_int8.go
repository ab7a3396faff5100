package quantize

import (
	"context"
	"strings"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/qdq"
)

// StaticInt8 quantizes weights and activations of layers, and the activations between them, to 8 bits (QuantizeLinear
// and DequantizeLinear). Activation ranges come from calibration samples. Other weights are stored as by WeightInt8.
type StaticInt8 struct {
	pass.Selection
	_ pass.SharedOptions[int8Weights]

	// PerTensor is one scale for the whole tensor instead of one for each output channel.
	PerTensor bool
	// Asymmetric quantizes each channel's own range with a zero point; without it the zero point is the middle of the
	// levels.
	Asymmetric bool
	// WeightType is the quantized data type: int8, the default, or uint8.
	WeightType string
	// ReduceRange uses 7 bits, so that products of uint8 with int8 do not saturate on CPUs without VNNI.
	ReduceRange bool `flag:"reduce-range" usage:"quantize weights to 7 bits, for CPUs without VNNI"`
	// ActivationType is the quantized data type of activations: uint8, int8, uint16 or int16. ONNX Runtime has no
	// integer kernels for 16 bits.
	ActivationType string `flag:"activation-type" default:"uint8" enum:"uint8,int8,uint16,int16" usage:"quantized data 'type' of activations: uint8, int8, uint16 or int16; ONNX Runtime has no integer kernels for 16 bits"`
	// ActivationSymmetric quantizes activations symmetrically: the zero point is the middle of the levels.
	ActivationSymmetric bool `flag:"activation-symmetric" usage:"symmetric activations: the zero point is the middle of the levels"`
	// NoBiasCorrection leaves the mean quantization error of outputs in place, which is otherwise subtracted from
	// biases.
	NoBiasCorrection bool `flag:"no-bias-correction" usage:"do not subtract the mean quantization error of outputs from biases"`
	// ActivationSQNR is the minimum SQNR of each output in decibels, with quantized activations and float weights, on
	// some of the samples: the most sensitive activations are kept in float until it is reached. 0 quantizes all.
	ActivationSQNR *float64 `flag:"activation-sqnr" default:"20" usage:"minimum SQNR of outputs in 'decibels' with quantized activations, on some samples: the most sensitive activations are kept in float until it is reached; 0 quantizes all"`
	// FloatBias keeps biases in float. Runtimes quantize them on load, and files are smaller.
	FloatBias bool `flag:"float-bias" usage:"keep biases in float, which runtimes quantize on load: files are smaller"`
	// Ranges is a file of activation ranges, used instead of calibration samples.
	Ranges string `flag:"ranges" file:"yes" usage:"'file' of activation ranges to use instead of calibration samples"`
	// SaveRanges is the file that activation ranges are written to.
	SaveRanges string `flag:"save-ranges" recipe:"no" usage:"'file' to write the activation ranges to"`
	// Calibrator is the rule for activation ranges: mse, minmax, moving-average, percentile or entropy.
	Calibrator string `flag:"calibrator" default:"mse" enum:"mse,minmax,moving-average,percentile,entropy" usage:"'rule' for activation ranges: mse, minmax, moving-average, percentile or entropy"`
	// Percentile is the percentage of values inside the range, for the rule percentile.
	Percentile float64 `flag:"percentile" default:"99.99" usage:"'percent' of the values inside the range, for the rule percentile"`
	Calibration
}

var staticInt8Method = &pass.Method{
	Name:    "static-int8",
	Command: "quantize",
	Doc: "8-bit weights and activations of Conv, MatMul, Gemm and the operators between them, with calibrated " +
		"ranges; other weights as weight-int8",
	Stage:      pass.Quantize,
	Shrinks:    true,
	Calibrates: true,
	New:        func() pass.Options { return &StaticInt8{} },
}

// Method describes the method.
func (StaticInt8) Method() *pass.Method { return staticInt8Method }

// Check implements pass.Checker.
func (o StaticInt8) Check() error { return o.observer().Check() }

func (o StaticInt8) observer() *calibrate.Observer {
	return &calibrate.Observer{Rule: o.Calibrator, Percentile: o.Percentile}
}

// Requires returns the capability of runtimes without which there is no form.
func (o StaticInt8) Requires() []pass.Requirement {
	if !strings.HasSuffix(o.ActivationType, "int16") {
		return nil
	}
	return []pass.Requirement{{Capability: pass.Activations16, Option: "--activation-type " + o.ActivationType,
		Nearest: "--activation-type uint8"}}
}

// Run implements pass.Options.
func (o StaticInt8) Run(ctx context.Context, s *pass.Step) error {
	q := &qdq.Quantizer{
		Spec: pass.SharedOf[int8Weights](o).spec(o.ReduceRange), Activations: qdq.ActivationTypeOf(o.ActivationType),
		FloatBias: o.FloatBias, NoBiasCorrection: o.NoBiasCorrection,
		LoadRanges: o.Ranges, SaveRanges: o.SaveRanges, Observer: *o.observer(), Data: calibrate.NewData(o.Calibration, true),
	}
	q.Activations.Symmetric = o.ActivationSymmetric
	if o.ActivationSQNR != nil {
		q.ActivationSQNR = *o.ActivationSQNR
	}
	return q.Run(ctx, s)
}
