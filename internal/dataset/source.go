package dataset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Source opens the samples that a method's options describe.
type Source struct{ pass.Samples }

// Open opens the data for inputs of m.
func (s *Source) Open(m *ir.Model, inputs []Input, workers int) (*Set, error) {
	o, err := s.Options(workers)
	if err != nil {
		return nil, err
	}
	return Open(s.Path, inputs, Outputs(m.Graph), o)
}

// Random generates random samples from seed 0. Integers are valid indices of the tables that they are used with.
func (s *Source) Random(m *ir.Model, samples, workers int) (*Set, error) {
	o, err := s.Options(workers)
	if err != nil {
		return nil, err
	}
	return Generate(Inputs(m.Graph), Random{Samples: samples, Dims: o.Dims, Fill: o.Fill, Ranges: Ranges(m),
		Carry: o.Carry, Workers: workers})
}

// Options returns the parsed options.
func (s *Source) Options(workers int) (Options, error) {
	o := Options{Labels: s.Labels, Scale: s.Scale, Layout: Layout(s.Layout), Limit: s.Limit, Prefetch: s.Prefetch,
		Loaders: s.Loaders, Workers: workers,
		Columns: s.Columns, Classes: s.Classes, Mean: s.Mean, Std: s.Std, Reshape: s.Reshape, Step: int64(s.Step),
	}
	var err error
	take := func(name string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("--%s: %w", name, e)
		}
	}
	var e error
	o.Fill, e = pairs(s.Fill, parseFloat)
	take("fill", e)
	o.Dims, e = pairs(s.Dims, parseSize)
	take("dim", e)
	o.Carry, e = parsePairs(s.Carry)
	take("carry", e)
	return o, err
}

// parsePairs parses a list of items of the form output=input.
func parsePairs(list pass.List) ([]Pair, error) {
	var pairs []Pair
	for _, item := range list {
		output, input, ok := strings.Cut(item, "=")
		if !ok || output == "" || input == "" {
			return nil, fmt.Errorf("%q is not OUTPUT=INPUT", item)
		}
		pairs = append(pairs, Pair{output, input})
	}
	return pairs, nil
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseSize(text string) (int64, error)    { return strconv.ParseInt(text, 10, 64) }

// pairs parses items of the form name=number.
func pairs[T any](list pass.List, parse func(string) (T, error)) (map[string]T, error) {
	out := map[string]T{}
	for _, w := range list {
		name, number, ok := strings.Cut(w, "=")
		x, err := parse(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not name=number", w)
		}
		out[name] = x
	}
	return out, nil
}
