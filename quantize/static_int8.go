package quantize

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
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
		s := &Quantizer3{Spec: QuantSpec{Symmetric: true}, Activations: ActivationTypeOf("uint8"), Data: calibrate.Data{Lenient: true}}
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

// qdq holds codes that integer kernels read, as what they are multiplied by comes as codes too.
var Form2 = pass.Form{Name: "qdq"}

// wideOpset is the first one whose QuantizeLinear has 16-bit codes.
const int16Opset = 21

type Quantizer3 struct {
	Spec                   QuantSpec // of weights
	Activations            ActivationType
	FloatBias              bool
	NoBiasCorrection       bool
	ActivationSQNR         float64 // in decibels, at outputs
	LoadRanges, SaveRanges string
	Observer               calibrate.Observer
	Data                   calibrate.Data

	buffers    *BufferPool
	floatNodes map[*ir.Node]bool // nodes that turned out to stay float
	minSQNR    float64           // in decibels: values with less have no codes
	reference  *reference
}

func (s *Quantizer3) Run(c *pass.Context) error {
	if err := s.Observer.Check(); err != nil {
		return err
	}
	s.buffers, s.floatNodes, s.minSQNR = NewBufferPool(), map[*ir.Node]bool{}, 0
	SkipQuantized(c)
	unfolded, err := Fold(c)
	if err != nil {
		return err
	}
	for _, u := range unfolded {
		for _, v := range u.Constants {
			c.Skip(v, pass.Readers(v), u.Why)
		}
	}
	rest := c.Weights()
	if err := s.quantizeNodes(c); err != nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(v *ir.Value) bool { return v.Removed() || v.Const == nil })
	return (&Quantizer{Spec: s.Spec}).Store(c, rest)
}

// integers lets what can compute on codes do so.
func (s *Quantizer3) quantizeNodes(c *pass.Context) error {
	if len(s.layersOf(c)) == 0 {
		return nil
	}
	var no *opset.Unsupported
	if err := s.raiseOpset(c); errors.As(err, &no) {
		c.Note("", "layers compute in float: "+no.Error())
		return nil
	} else if err != nil {
		return err
	}
	f, known, err := s.calibrate(c)
	if s.reference != nil {
		err = errors.Join(err, s.reference.Close())
		s.reference = nil
	}
	if err != nil || len(f.layers) == 0 {
		return err
	}
	if s.SaveRanges != "" {
		if err := calibrate.Save(c, s.SaveRanges, s.minSQNR, known); err != nil {
			return err
		}
	}
	if s.Activations.is16Bit() {
		c.Note("", fmt.Sprintf("%s has no integer kernels for %s activations: it computes in float", pass.Runtime, s.Activations.DType))
	}
	return s.emit(c, f, known)
}

func (s *Quantizer3) raiseOpset(c *pass.Context) error {
	to := int64(dequantizeOpset)
	if s.Activations.is16Bit() {
		to = int16Opset
	}
	if !OpsetBelow(c.Model, to) {
		return nil
	}
	return RaiseOpset(c, to)
}

// calibrated chooses the nodes and finds what is to be known of their values. What turns out to have no range stays float.
func (s *Quantizer3) calibrate(c *pass.Context) (*quantizedGraph, map[string]calibrate.Summary, error) {
	known := map[string]calibrate.Summary{}
	for {
		f := newQuantizedGraph(c, s.layersOf(c), s.floatNodes, !s.Activations.Symmetric)
		var missing []string
		for _, v := range f.observed() {
			if _, ok := known[v.Name]; !ok {
				missing = append(missing, v.Name)
			}
		}
		slices.Sort(missing)
		why, err := s.measureRanges(c, slices.Compact(missing), known)
		if err != nil {
			return nil, nil, err
		}
		s.findCoarse(f, known, why)
		if s.keepFloat(c, f, why) {
			continue
		}
		if again, err := s.precheck(c, f, known); err != nil {
			return nil, nil, err
		} else if again {
			continue
		}
		if good, err := s.sensitivityHolds(c, f, known); good || err != nil {
			return f, known, err
		}
	}
}

// measure adds what is to be known of the named values, and returns why some have no range.
func (s *Quantizer3) measureRanges(c *pass.Context, names []string, known map[string]calibrate.Summary) (map[string]string, error) {
	why := map[string]string{}
	switch {
	case len(names) == 0:
		return why, nil
	case s.LoadRanges != "":
		return why, s.loadRanges(names, known)
	case c.DryRun: // sizes hardly depend on ranges
		for _, name := range names {
			known[name] = calibrate.Summary{Range: calibrate.Range{Min: -1, Max: 1}}
		}
		return why, nil
	}
	o, channels := s.Observer, calibrate.Channels{}
	err := s.Data.Each(c, c.Model, names, func(name string, a *ir.Array) error {
		channels.Visit(name, a)
		return o.Visit(name, a)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		r, reason := o.Range(name, int(s.Activations.max-s.Activations.min))
		if reason != "" {
			why[name] = reason
			continue
		}
		known[name] = calibrate.Summary{Range: r, Means: channels.Means(name), Variance: channels.Variance(name)}
	}
	return why, nil
}

// coarse adds why the codes of values would not do.
func (s *Quantizer3) findCoarse(f *quantizedGraph, known map[string]calibrate.Summary, why map[string]string) {
	for _, v := range f.quantizedValues() {
		name := f.scaleSource(v).Name
		k, ok := known[name]
		if !ok {
			continue
		}
		scale, _, normal := s.Activations.qparams(k.Range)
		db := 10 * math.Log10(k.Variance/(float64(scale)*float64(scale)/12))
		switch {
		case !normal:
			why[name] = fmt.Sprintf("its range from %g to %g gives no scale of normal float32 size", k.Min, k.Max)
		case k.Variance > 0 && db < s.minSQNR:
			why[name] = fmt.Sprintf("codes would be coarse, %.1f dB to what varies in it", db)
		}
	}
}

func (s *Quantizer3) loadRanges(names []string, known map[string]calibrate.Summary) error {
	file, err := calibrate.Load(s.LoadRanges)
	if err != nil {
		return err
	}
	s.minSQNR = file.Clarity
	for _, name := range names {
		v, ok := file.Values[name]
		if !ok {
			return fmt.Errorf("%s: it has no range for value %q: ranges are of one model; --save-ranges writes them", s.LoadRanges, name)
		}
		known[name] = v
	}
	return nil
}

// leave takes the nodes out that make or read values without a range. It reports whether there are any.
func (s *Quantizer3) keepFloat(c *pass.Context, f *quantizedGraph, why map[string]string) bool {
	some := false
	for n := range c.Model.Graph.Nodes() {
		if !f.integer[n] {
			continue
		}
		for _, v := range slices.Concat(f.reads(n), f.makes(n)) {
			if reason := why[f.scaleSource(v).Name]; reason != "" && !s.floatNodes[n] {
				s.floatNodes[n], some = true, true
				c.Note(v.Name, fmt.Sprintf("%s computes in float: value %q: %s", n.Label(), f.scaleSource(v).Name, reason))
			}
		}
	}
	return some
}

// A codeRange is the codes of activations.
type ActivationType struct {
	DType     ir.DType
	min, max  int64
	Symmetric bool
}

func ActivationTypeOf(name string) ActivationType {
	return map[string]ActivationType{
		"uint8":  {DType: ir.Uint8, max: math.MaxUint8},
		"int8":   {DType: ir.Int8, min: math.MinInt8, max: math.MaxInt8},
		"uint16": {DType: ir.Uint16, max: math.MaxUint16},
		"int16":  {DType: ir.Int16, min: math.MinInt16, max: math.MaxInt16},
	}[name]
}

func (r *ActivationType) is16Bit() bool { return r.max-r.min > math.MaxUint8 }

// fit gives scale and zero point for what lies in a range, false for a scale below what float32 holds in full.
func (r *ActivationType) qparams(x calibrate.Range) (scale float32, zero int64, ok bool) {
	middle := (r.min + r.max + 1) / 2
	if r.Symmetric {
		scale = float32(max(-x.Min, x.Max) / float64(r.max-middle))
		zero = middle
	} else {
		scale = float32((x.Max - x.Min) / float64(r.max-r.min))
		zero = r.min
		if scale > 0 {
			zero = min(max(r.min-int64(math.RoundToEven(x.Min/float64(scale))), r.min), r.max)
		}
	}
	if x.Min == 0 && x.Max == 0 {
		return 1, zero, true
	}
	return scale, zero, IsNormal(scale)
}
