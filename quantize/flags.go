package quantize

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/qdq"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// bindScheme declares the options that every 8-bit method has.
func bindScheme(fs *flag.FlagSet, s *spec.QuantSpec) {
	fs.Var(choice{&s.PerTensor, false}, "per-channel", "one scale for each output channel (default)")
	fs.Var(choice{&s.PerTensor, true}, "per-tensor", "one scale for the whole tensor")
	fs.Var(choice{&s.Symmetric, true}, "symmetric", "zero is code 0 (default)")
	fs.Var(choice{&s.Symmetric, false}, "asymmetric", "codes span each channel's own range")
	fs.Var((*weightType)(&s.Unsigned), "weight-type", "`type` of the codes: int8 or uint8")
	fs.BoolVar(&s.ReduceRange, "reduce-range", false, "use 7 bits, for CPUs without VNNI")
}

// A choice is a boolean flag that is one of two names of an option.
type choice struct {
	to   *bool
	mean bool
}

func (c choice) String() string {
	if c.to == nil {
		return ""
	}
	return fmt.Sprint(*c.to == c.mean)
}

func (c choice) Set(v string) error {
	switch v {
	case "true":
		*c.to = c.mean
	case "false":
		*c.to = !c.mean
	default:
		return fmt.Errorf("%q is neither true nor false", v)
	}
	return nil
}

func (c choice) IsBoolFlag() bool { return true }

type weightType bool

func (w *weightType) String() string {
	if w != nil && bool(*w) {
		return "uint8"
	}
	return "int8"
}

func (w *weightType) Set(v string) error {
	switch v {
	case "int8", "uint8":
		*w = v == "uint8"
		return nil
	}
	return fmt.Errorf("%q is neither int8 nor uint8", v)
}

// bindBlocks declares the options of methods that are about blocks alone.
func bindBlocks(fs *flag.FlagSet, o *weightonly.BlockOptions) {
	signed, unsigned := weightonly.BlockTypes[o.Bits].Signed.String(), weightonly.BlockTypes[o.Bits].Unsigned.String()
	o.Block, o.Search, o.Algo, o.WeightType = weightonly.DefaultBlock, "mse", "rtn", unsigned
	o.Form.Name = weightonly.StandardForm
	bindShared(fs, o)
	fs.Var(choice{&o.Symmetric, true}, "symmetric", "zero is in the middle of the codes")
	fs.Var(choice{&o.Symmetric, false}, "asymmetric", "codes span each block's own range")
	fs.Var(word{&o.WeightType, []string{signed, unsigned}}, "weight-type", fmt.Sprintf("`type` of the codes: %s or %s", signed, unsigned))
	fs.Var(choice{&o.PerChannel, true}, "per-channel", "one scale for each output channel instead of blocks")
}

// bindShared declares the options that methods have which round whole channels, unless one of them is given.
func bindShared(fs *flag.FlagSet, o *weightonly.BlockOptions) {
	fs.Var((*blockSize)(&o.Block), "block", "`rows` of a channel that share a scale: a power of two from 16 to 256")
	fs.Var(word{&o.Search, []string{"mse", "span"}}, "search", "how scales are found, by `rule`: mse (least squared error, rounded so that errors of a channel do not add up) or span (the values' range, rounded to the nearest)")
	fs.Var(word{&o.Algo, []string{"rtn", "hqq", "gptq", "awq"}}, "algo", "how codes are found, by `algorithm`: rtn (the nearest), hqq (half-quadratic zero points), or by samples: gptq (errors made up for), awq (inputs that are large count more)")
	bindForm(fs, &o.Form)
	bindGPTQ(fs, &o.GPTQ)
}

// bindForm declares the form of products.
func bindForm(fs *flag.FlagSet, f *weightonly.Form) {
	fs.Var(word{&f.Name, []string{weightonly.StandardForm, weightonly.NBitsForm}}, "form", "`form` of products: dequantizelinear (standard) or matmulnbits (an operator of ONNX Runtime's, at any opset)")
	fs.Int64Var(&f.AccuracyLevel, "accuracy-level", 0, "`level` that matmulnbits may compute at: 0 (float32), or 4 (activations in 8 bits: faster, less exact)")
}

// bindGPTQ declares the options of gptq.
func bindGPTQ(fs *flag.FlagSet, g *weightonly.GPTQ) {
	g.Damp = 0.01
	g.Data.Bind(fs, 128)
	fs.BoolVar(&g.ActOrder, "act-order", true, "gptq rounds the blocks, and in them the rows, with the largest inputs first")
	fs.Var((*share)(&g.Damp), "damp", "`part` of the mean square of a layer's inputs that gptq adds to each at least; more where samples are few")
}

// A share is an option: a number that is not negative.
type share float64

// String is the number.
func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

// Set takes a number.
func (s *share) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= math.MaxFloat32) {
		return fmt.Errorf("%q is not a number from 0 on", text)
	}
	*s = share(x)
	return nil
}

// bindBiasCorrection declares it; d is the samples of the method.
func bindBiasCorrection(fs *flag.FlagSet, b *biascorrection.Correction, d *calibrate.Data) {
	b.Data = d
	fs.BoolVar(&b.Enabled, "bias-correction", false, "take the mean of what rounding weights adds to outputs out of biases, by samples")
}

func bindNarrow(fs *flag.FlagSet, t *float.HalfType) func(*pass.Context) error {
	w := &float.Converter{HalfType: t, KeepIO: true}
	fs.Var(&arithmetic{&w.Compute, t.DType}, "compute", "`type` of the arithmetic: float32, or the method's own, which makes the values between nodes narrow too")
	fs.BoolVar(&w.KeepIO, "keep-io", true, "with --compute: inputs and outputs of the model stay float32, as callers expect")
	fs.Var(&w.KeepFloat32, "keep-float32", "with --compute: nodes that stay float32, by `globs` over their names (op:Softmax for operators)")
	fs.BoolVar(&w.Clamp, "clamp", false, "weights beyond the type's range become its largest number; they stay float32 otherwise")
	if t.Overflow < float.BFloat16Type.Overflow {
		w.Data = &calibrate.Data{Lenient: true}
		w.Data.Bind(fs, 32)
	}
	return w.Run
}

// arithmetic is the value of --compute.
type arithmetic struct {
	narrow *bool
	dt     ir.DType
}

func (a *arithmetic) String() string {
	if a.narrow != nil && *a.narrow {
		return a.dt.String()
	}
	return "float32"
}

func (a *arithmetic) Set(v string) error {
	switch v {
	case "float32", a.dt.String():
		*a.narrow = v != "float32"
		return nil
	}
	return fmt.Errorf("%q is neither float32 nor %s", v, a.dt)
}

// A word is an option that takes one of some words. As it says which, recipes hold it.
type word struct {
	to    *string
	words []string
}

func (w word) String() string {
	if w.to == nil {
		return ""
	}
	return *w.to
}

// Set takes one of the words.
func (w word) Set(v string) error {
	if !slices.Contains(w.words, v) {
		return fmt.Errorf("%q is neither %s", v, strings.Join(w.words, " nor "))
	}
	*w.to = v
	return nil
}

// A blockSize is an option: how many weights share a scale, 0 where blocks are not asked for.
type blockSize int

// String is empty for none.
func (b *blockSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.Itoa(int(*b))
}

// Set takes a power of two from 16 to 256.
func (b *blockSize) Set(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 16 || n > 256 || n&(n-1) != 0 {
		return fmt.Errorf("%q is not a power of two from 16 to 256", v)
	}
	*b = blockSize(n)
	return nil
}

// activationType is the option of that name.
type activationTypeFlag qdq.ActivationType

// String is the name of the type.
func (r *activationTypeFlag) String() string { return r.DType.String() }

// Set takes the name of a type.
func (r *activationTypeFlag) Set(name string) error {
	c := qdq.ActivationTypeOf(name)
	if c.DType == ir.Undefined {
		return fmt.Errorf("%q is none of uint8, int8, uint16 and int16", name)
	}
	c.Symmetric = r.Symmetric
	*r = activationTypeFlag(c)
	return nil
}
