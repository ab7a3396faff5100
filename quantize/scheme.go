package quantize

import (
	"flag"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A scheme says which 8-bit codes stand for real values: real = (code - zero) · scale.
type scheme struct {
	unsigned  bool
	symmetric bool
	reduced   bool // 7 bits, so that U8S8 products do not saturate without VNNI
	perTensor bool
}

// bind declares the options that every 8-bit method has.
func (s *scheme) bind(fs *flag.FlagSet) {
	fs.Var(choice{&s.perTensor, false}, "per-channel", "one scale for each output channel (default)")
	fs.Var(choice{&s.perTensor, true}, "per-tensor", "one scale for the whole tensor")
	fs.Var(choice{&s.symmetric, true}, "symmetric", "zero is code 0 (default)")
	fs.Var(choice{&s.symmetric, false}, "asymmetric", "codes span each channel's own range")
	fs.Var((*weightType)(&s.unsigned), "weight-type", "`type` of the codes: int8 or uint8")
	fs.BoolVar(&s.reduced, "reduce-range", false, "use 7 bits, for CPUs without VNNI")
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

func (s scheme) dtype() ir.DType {
	if s.unsigned {
		return ir.Uint8
	}
	return ir.Int8
}

// codes is the range of codes in use. Symmetric ranges lie evenly around zero; the
// reduced int8 range is ±64, as ONNX Runtime's.
func (s scheme) codes() kernel.Codes {
	switch z := s.zero(); {
	case s.symmetric:
		return kernel.Codes{Lo: z - s.half(), Hi: z + s.half()}
	case s.unsigned && s.reduced:
		return kernel.Codes{Lo: 0, Hi: 127}
	case s.unsigned:
		return kernel.Codes{Lo: 0, Hi: 255}
	case s.reduced:
		return kernel.Codes{Lo: -64, Hi: 64}
	}
	return kernel.Codes{Lo: -128, Hi: 127}
}

// zero is the zero point of the symmetric scheme.
func (s scheme) zero() int32 {
	switch {
	case s.unsigned && s.reduced:
		return 64
	case s.unsigned:
		return 128
	}
	return 0
}

// half is the symmetric scheme's largest distance from zero. It does not depend on the
// type, so that uint8 codes are int8 codes moved up.
func (s scheme) half() int32 {
	if s.reduced {
		return 64
	}
	return 127
}

// fit gives scale and zero point for values in [lo, hi]. A channel of zeros has
// scale 1. It reports false for a scale that float32 holds with less than full
// precision: codes would not stand for the values any more.
func (s scheme) fit(lo, hi float32) (scale float32, zero int32, ok bool) {
	if lo == 0 && hi == 0 {
		if s.symmetric {
			return 1, s.zero(), true
		}
		return 1, min(max(0, s.codes().Lo), s.codes().Hi), true
	}
	if s.symmetric {
		scale = max(-lo, hi) / float32(s.half())
		return scale, s.zero(), normal(scale)
	}
	c := s.codes()
	lo, hi = min(lo, 0), max(hi, 0)
	scale = (hi - lo) / float32(c.Hi-c.Lo)
	if !normal(scale) {
		return scale, 0, false
	}
	z := float32(c.Lo) - lo/scale
	zero = int32(math.RoundToEven(float64(z)))
	return scale, min(max(zero, c.Lo), c.Hi), true
}

// normal reports whether x is neither infinite nor below the smallest normal float32.
func normal(x float32) bool {
	return x >= 0x1p-126 && x <= math.MaxFloat32
}
