package dataset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Source is the options of a method's calibration or training data, as an embedded group of an option struct. They have the names
// and meaning of the data flags of commands that run models.
type Source struct {
	Path    string  `flag:"data" usage:"'path' of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX test data"`
	Labels  string  `flag:"labels" usage:"'name' of the array or column of labels, or path of a file of labels (default: labels)"`
	Columns string  `flag:"columns" usage:"comma-separated 'names' or numbers of the input columns of a CSV"`
	Scale   float64 `flag:"scale" usage:"'factor' of values: an input is (value·scale - mean)/std"`
	Mean    string  `flag:"mean" usage:"comma-separated 'numbers' subtracted from values: one, or one per channel"`
	Std     string  `flag:"std" usage:"comma-separated 'numbers' by which values are divided: one, or one per channel"`
	Reshape string  `flag:"reshape" usage:"comma-separated 'sizes' of the axes of one sample"`
	Fill    List    `flag:"fill" usage:"comma-separated 'name=number': the value of every element of inputs that are not in the data"`
	Dims    List    `flag:"dim" usage:"comma-separated 'name=size' of dynamic axes of the inputs"`
	Limit   int     `flag:"limit" usage:"maximum 'number' of training or calibration samples to read from --data"`
}

// Open opens the data for inputs of m.
func (s *Source) Open(m *ir.Model, inputs []Input, workers int) (*Set, error) {
	o, err := s.options(workers)
	if err != nil {
		return nil, err
	}
	return Open(s.Path, inputs, Outputs(m.Graph), o)
}

// Random generates random samples from seed 0. Integers are valid indices of the tables that they are used with.
func (s *Source) Random(m *ir.Model, samples, workers int) (*Set, error) {
	o, err := s.options(workers)
	if err != nil {
		return nil, err
	}
	return Generate(Inputs(m.Graph), Random{Samples: samples, Dims: o.Dims, Fill: o.Fill, Ranges: Ranges(m), Workers: workers})
}

func (s *Source) options(workers int) (Options, error) {
	o := Options{Labels: s.Labels, Scale: s.Scale, Limit: s.Limit, Workers: workers, Columns: items(s.Columns)}
	var err error
	take := func(name string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("--%s: %w", name, e)
		}
	}
	var e error
	o.Mean, e = parsed(s.Mean, parseFloat)
	take("mean", e)
	o.Std, e = parsed(s.Std, parseFloat)
	take("std", e)
	o.Reshape, e = parsed(s.Reshape, parseSize)
	take("reshape", e)
	o.Fill, e = pairs(string(s.Fill), parseFloat)
	take("fill", e)
	o.Dims, e = pairs(string(s.Dims), parseSize)
	take("dim", e)
	return o, err
}

// A List is a comma-separated list, an option that may be repeated.
type List string

// String returns the items, separated by commas.
func (l *List) String() string { return string(*l) }

// Set appends items.
func (l *List) Set(text string) error {
	if *l != "" {
		text = string(*l) + "," + text
	}
	*l = List(text)
	return nil
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseSize(text string) (int64, error)    { return strconv.ParseInt(text, 10, 64) }

// items splits a comma-separated list.
func items(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// parsed parses the items of a comma-separated list as numbers.
func parsed[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, w := range items(text) {
		x, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", w)
		}
		out = append(out, x)
	}
	return out, nil
}

// pairs parses a comma-separated list of name=number.
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
