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
		s := &static{scheme: scheme{symmetric: true}, codes: codesOf("uint8"), data: calibrate.Data{Lenient: true}}
		s.scheme.bind(fs)
		fs.Var(&s.codes, "activation-type", "`type` of the codes of activations: uint8, int8, uint16 or int16; ONNX Runtime has no integer kernels for 16 bits")
		fs.BoolVar(&s.codes.symmetric, "activation-symmetric", false, "the codes of activations lie evenly around zero")
		fs.BoolVar(&s.uncorrected, "no-bias-correction", false, "leave in the mean of what rounding weights adds to outputs, which biases otherwise take out")
		fs.Float64Var(&s.target, "activation-sqnr", 20, "least `decibels` that rounding activations leaves at each output, on some of the samples: what has the coarsest codes stays float until that holds; 0 for all in integers")
		fs.BoolVar(&s.floatBias, "float-bias", false, "leave biases float, which runtimes quantize as they load: files are smaller")
		fs.StringVar(&s.load, "ranges", "", "`file` of ranges to take instead of those of samples")
		fs.StringVar(&s.save, "save-ranges", "", "`file` to write the ranges to")
		s.observer.Bind(fs)
		s.data.Bind(fs, 128)
		return s.run
	},
}

// qdq holds codes that integer kernels read, as what they are multiplied by comes as codes too.
var qdq = pass.Form{Name: "qdq"}

// wideOpset is the first one whose QuantizeLinear has 16-bit codes.
const wideOpset = 21

type static struct {
	scheme      scheme // of weights
	codes       codeRange
	floatBias   bool
	uncorrected bool
	target      float64 // in decibels, at outputs
	load, save  string
	observer    calibrate.Observer
	data        calibrate.Data

	buffers   *buffers
	left      map[*ir.Node]bool // nodes that turned out to stay float
	clarity   float64           // in decibels: values with less have no codes
	rehearsal *rehearsal
}

func (s *static) run(c *pass.Context) error {
	if err := s.observer.Check(); err != nil {
		return err
	}
	s.buffers, s.left, s.clarity = newBuffers(), map[*ir.Node]bool{}, 0
	noteQuantized(c)
	unfolded, err := FoldBatchNorms(c)
	if err != nil {
		return err
	}
	for _, u := range unfolded {
		for _, v := range u.Constants {
			c.Skip(v, pass.Readers(v), u.Why)
		}
	}
	rest := c.Weights()
	if err := s.integers(c); err != nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(v *ir.Value) bool { return v.Removed() || v.Const == nil })
	return (&weightOnly{scheme: s.scheme}).store(c, rest)
}

// integers lets what can compute on codes do so.
func (s *static) integers(c *pass.Context) error {
	if len(s.layersOf(c)) == 0 {
		return nil
	}
	var no *opset.Unsupported
	if err := s.raised(c); errors.As(err, &no) {
		c.Note("", "layers compute in float: "+no.Error())
		return nil
	} else if err != nil {
		return err
	}
	f, known, err := s.calibrated(c)
	if s.rehearsal != nil {
		err = errors.Join(err, s.rehearsal.Close())
		s.rehearsal = nil
	}
	if err != nil || len(f.layers) == 0 {
		return err
	}
	if s.save != "" {
		if err := calibrate.Save(c, s.save, s.clarity, known); err != nil {
			return err
		}
	}
	if s.codes.wide() {
		c.Note("", fmt.Sprintf("%s has no integer kernels for %s activations: it computes in float", pass.Runtime, s.codes.String()))
	}
	return s.emit(c, f, known)
}

func (s *static) raised(c *pass.Context) error {
	to := int64(dequantizeOpset)
	if s.codes.wide() {
		to = wideOpset
	}
	if !below(c.Model, to) {
		return nil
	}
	return raise(c, to)
}

// calibrated chooses the nodes and finds what is to be known of their values. What turns out to have no range stays float.
func (s *static) calibrated(c *pass.Context) (*flow, map[string]calibrate.Summary, error) {
	known := map[string]calibrate.Summary{}
	for {
		f := newFlow(c, s.layersOf(c), s.left, !s.codes.symmetric)
		var missing []string
		for _, v := range f.needed() {
			if _, ok := known[v.Name]; !ok {
				missing = append(missing, v.Name)
			}
		}
		slices.Sort(missing)
		why, err := s.measure(c, slices.Compact(missing), known)
		if err != nil {
			return nil, nil, err
		}
		s.coarse(f, known, why)
		if s.leave(c, f, why) {
			continue
		}
		if again, err := s.precheck(c, f, known); err != nil {
			return nil, nil, err
		} else if again {
			continue
		}
		if good, err := s.good(c, f, known); good || err != nil {
			return f, known, err
		}
	}
}

// measure adds what is to be known of the named values, and returns why some have no range.
func (s *static) measure(c *pass.Context, names []string, known map[string]calibrate.Summary) (map[string]string, error) {
	why := map[string]string{}
	switch {
	case len(names) == 0:
		return why, nil
	case s.load != "":
		return why, s.loaded(names, known)
	case c.DryRun: // sizes hardly depend on ranges
		for _, name := range names {
			known[name] = calibrate.Summary{Range: calibrate.Range{Min: -1, Max: 1}}
		}
		return why, nil
	}
	o, channels := s.observer, calibrate.Channels{}
	err := s.data.Each(c, c.Model, names, func(name string, a *ir.Array) error {
		channels.Visit(name, a)
		return o.Visit(name, a)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		r, reason := o.Range(name, int(s.codes.top-s.codes.low))
		if reason != "" {
			why[name] = reason
			continue
		}
		known[name] = calibrate.Summary{Range: r, Means: channels.Means(name), Variance: channels.Variance(name)}
	}
	return why, nil
}

// coarse adds why the codes of values would not do.
func (s *static) coarse(f *flow, known map[string]calibrate.Summary, why map[string]string) {
	for _, v := range f.values() {
		name := f.root(v).Name
		k, ok := known[name]
		if !ok {
			continue
		}
		scale, _, normal := s.codes.fit(k.Range)
		db := 10 * math.Log10(k.Variance/(float64(scale)*float64(scale)/12))
		switch {
		case !normal:
			why[name] = fmt.Sprintf("its range from %g to %g gives no scale of normal float32 size", k.Min, k.Max)
		case k.Variance > 0 && db < s.clarity:
			why[name] = fmt.Sprintf("codes would be coarse, %.1f dB to what varies in it", db)
		}
	}
}

func (s *static) loaded(names []string, known map[string]calibrate.Summary) error {
	file, err := calibrate.Load(s.load)
	if err != nil {
		return err
	}
	s.clarity = file.Clarity
	for _, name := range names {
		v, ok := file.Values[name]
		if !ok {
			return fmt.Errorf("%s: it has no range for value %q: ranges are of one model; --save-ranges writes them", s.load, name)
		}
		known[name] = v
	}
	return nil
}

// leave takes the nodes out that make or read values without a range. It reports whether there are any.
func (s *static) leave(c *pass.Context, f *flow, why map[string]string) bool {
	some := false
	for n := range c.Model.Graph.Nodes() {
		if !f.integer[n] {
			continue
		}
		for _, v := range slices.Concat(f.reads(n), f.makes(n)) {
			if reason := why[f.root(v).Name]; reason != "" && !s.left[n] {
				s.left[n], some = true, true
				c.Note(v.Name, fmt.Sprintf("%s computes in float: value %q: %s", n.Label(), f.root(v).Name, reason))
			}
		}
	}
	return some
}

// A codeRange is the codes of activations.
type codeRange struct {
	dtype     ir.DType
	low, top  int64
	symmetric bool
}

func codesOf(name string) codeRange {
	return map[string]codeRange{
		"uint8":  {dtype: ir.Uint8, top: math.MaxUint8},
		"int8":   {dtype: ir.Int8, low: math.MinInt8, top: math.MaxInt8},
		"uint16": {dtype: ir.Uint16, top: math.MaxUint16},
		"int16":  {dtype: ir.Int16, low: math.MinInt16, top: math.MaxInt16},
	}[name]
}

// String is the name of the type.
func (r *codeRange) String() string { return r.dtype.String() }

// Set takes the name of a type.
func (r *codeRange) Set(name string) error {
	c := codesOf(name)
	if c.dtype == ir.Undefined {
		return fmt.Errorf("%q is none of uint8, int8, uint16 and int16", name)
	}
	c.symmetric = r.symmetric
	*r = c
	return nil
}

func (r *codeRange) wide() bool { return r.top-r.low > math.MaxUint8 }

// fit gives scale and zero point for what lies in a range, false for a scale below what float32 holds in full.
func (r *codeRange) fit(x calibrate.Range) (scale float32, zero int64, ok bool) {
	middle := (r.low + r.top + 1) / 2
	if r.symmetric {
		scale = float32(max(-x.Min, x.Max) / float64(r.top-middle))
		zero = middle
	} else {
		scale = float32((x.Max - x.Min) / float64(r.top-r.low))
		zero = r.low
		if scale > 0 {
			zero = min(max(r.low-int64(math.RoundToEven(x.Min/float64(scale))), r.low), r.top)
		}
	}
	if x.Min == 0 && x.Max == 0 {
		return 1, zero, true
	}
	return scale, zero, normal(scale)
}
