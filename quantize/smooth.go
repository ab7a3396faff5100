package quantize

import (
	"flag"
	"fmt"
	"strconv"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/smoothing"
)

// Smooth divides activations' channels by factors that weights are multiplied by, so that both
// can be rounded to 8 bits (Xiao et al., SmoothQuant: Accurate and Efficient Post-Training
// Quantization for Large Language Models, ICML 2023).
var Smooth = &pass.Method{
	Name:    "smooth",
	Command: "quantize",
	Doc:     "SmoothQuant: differences between channels moved from activations into the weights of MatMul and Gemm, by samples; still floats",
	Stage:   pass.Prepare,
	Repeats: true, // a layer's weights change with the factors of the values on both of its sides
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		o, d := smoothing.Options{Alpha: 0.5}, calibrate.Data{}
		fs.Var((*alpha)(&o), "alpha", "`share` of the differences that moves, from 0 to 1, or auto: the one, or one for each group of products, that is best for the outputs at 8 bits, if any is")
		fs.BoolVar(&o.Insert, "insert-mul", true, "divide by a Mul where no normalization, product or Mul in front takes the factors")
		d.Bind(fs, 8)
		return func(c *pass.Context) error { return smoothing.Smooth(c, &d, o) }
	},
}

// alpha is the option of that name.
type alpha smoothing.Options

// String is the option as Set takes it.
func (a *alpha) String() string {
	if a.Search {
		return "auto"
	}
	return strconv.FormatFloat(a.Alpha, 'g', -1, 64)
}

// Set parses a share or auto.
func (a *alpha) Set(s string) error {
	if s == "auto" {
		a.Search = true
		return nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return fmt.Errorf("%q is neither a share from 0 to 1 nor auto", s)
	}
	a.Alpha, a.Search = x, false
	return nil
}
