package dataset

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Source is the options of what samples a method looks at. They are those of the command that runs models.
type Source struct {
	Path  string // as Open takes it; empty where there are none
	Limit int    // use the first samples only; 0 for all

	labels, columns, mean, std, reshape string
	fill, dim                           list
	scale                               float64
}

// Bind declares the options.
func (s *Source) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.Path, "data", "", "`path` of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX test data")
	fs.StringVar(&s.labels, "labels", "", "`name` of the array or column of labels, or path of a file of them (default: labels)")
	fs.StringVar(&s.columns, "columns", "", "`names` or numbers of the columns of a CSV that are the input, with commas")
	fs.Float64Var(&s.scale, "scale", 0, "`factor` of values: an input is (value·scale - mean)/std")
	fs.StringVar(&s.mean, "mean", "", "`numbers` to take from values, one or one a channel")
	fs.StringVar(&s.std, "std", "", "`numbers` to divide values by, one or one a channel")
	fs.StringVar(&s.reshape, "reshape", "", "`sizes` of the axes of one sample, with commas")
	fs.Var(&s.fill, "fill", "`name=number`, with commas, for every element of inputs that the data does not hold")
	fs.Var(&s.dim, "dim", "`name=size`, with commas, of open axes of the inputs")
	fs.IntVar(&s.Limit, "limit", 0, "maximum `number` of training or calibration samples to read from --data")
}

// Open opens the data for inputs of m.
func (s *Source) Open(m *ir.Model, inputs []Input, workers int) (*Set, error) {
	o, err := s.options(workers)
	if err != nil {
		return nil, err
	}
	return Open(s.Path, inputs, Outputs(m.Graph), o)
}

// MakeUp makes so many samples up, from a seed that is always the same: integers lie within the tables that they are
// looked up in.
func (s *Source) MakeUp(m *ir.Model, samples, workers int) (*Set, error) {
	o, err := s.options(workers)
	if err != nil {
		return nil, err
	}
	return Generate(Inputs(m.Graph), Random{Samples: samples, Dims: o.Dims, Fill: o.Fill, Ranges: Ranges(m), Workers: workers})
}

func (s *Source) options(workers int) (Options, error) {
	o := Options{Labels: s.labels, Scale: s.scale, Limit: s.Limit, Workers: workers, Columns: items(s.columns)}
	var err error
	take := func(name string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("--%s: %w", name, e)
		}
	}
	var e error
	o.Mean, e = parsed(s.mean, parseFloat)
	take("mean", e)
	o.Std, e = parsed(s.std, parseFloat)
	take("std", e)
	o.Reshape, e = parsed(s.reshape, parseSize)
	take("reshape", e)
	o.Fill, e = pairs(string(s.fill), parseFloat)
	take("fill", e)
	o.Dims, e = pairs(string(s.dim), parseSize)
	take("dim", e)
	return o, err
}

// A list is an option that may be given again: its items are joined by commas.
type list string

// String is the items so far.
func (l *list) String() string { return string(*l) }

// Set adds items.
func (l *list) Set(text string) error {
	if *l != "" {
		text = string(*l) + "," + text
	}
	*l = list(text)
	return nil
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseSize(text string) (int64, error)    { return strconv.ParseInt(text, 10, 64) }

// items are those of a list with commas.
func items(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// parsed are the items of a list as numbers.
func parsed[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, w := range items(text) {
		x, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, fmt.Errorf("%q is no number", w)
		}
		out = append(out, x)
	}
	return out, nil
}

// pairs are the items of a list of name=number.
func pairs[T any](text string, parse func(string) (T, error)) (map[string]T, error) {
	out := map[string]T{}
	for _, w := range items(text) {
		name, number, ok := strings.Cut(w, "=")
		x, err := parse(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not name=number", w)
		}
		out[name] = x
	}
	return out, nil
}
