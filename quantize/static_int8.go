package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/qdq"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// StaticInt8 stores weights as 8-bit codes and lets layers, and what lies between them, compute on codes whose scales
// follow from samples. Weights that have no place in that are stored as weight-int8 does.
var StaticInt8 = &pass.Method{
	Name:    "static-int8",
	Command: "quantize",
	Doc:     "8-bit weights and activations of Conv, MatMul, Gemm and what lies between, by ranges taken from samples; other weights as weight-int8",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		s := &qdq.Quantizer{Spec: spec.QuantSpec{Symmetric: true}, Activations: qdq.ActivationTypeOf("uint8"), Data: calibrate.Data{Lenient: true}}
		bindScheme(fs, &s.Spec)
		fs.Var((*activationTypeFlag)(&s.Activations), "activation-type", "`type` of the codes of activations: uint8, int8, uint16 or int16; ONNX Runtime has no integer kernels for 16 bits")
		fs.BoolVar(&s.Activations.Symmetric, "activation-symmetric", false, "the codes of activations lie evenly around zero")
		fs.BoolVar(&s.NoBiasCorrection, "no-bias-correction", false, "leave in the mean of what rounding weights adds to outputs, which biases otherwise take out")
		fs.Float64Var(&s.ActivationSQNR, "activation-sqnr", 20, "least `decibels` that rounding activations leaves at each output, on some of the samples: what has the coarsest codes stays float until that holds; 0 for all in integers")
		fs.BoolVar(&s.FloatBias, "float-bias", false, "leave biases float, which runtimes quantize as they load: files are smaller")
		fs.StringVar(&s.LoadRanges, "ranges", "", "`file` of ranges to take instead of those of samples")
		fs.StringVar(&s.SaveRanges, "save-ranges", "", "`file` to write the ranges to")
		s.Observer.Bind(fs)
		s.Data.Bind(fs, 128)
		return s.Run
	},
}
