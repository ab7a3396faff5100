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
	return Generate(Inputs(m.Graph), Random{Samples: samples, Dims: o.Dims, Fill: o.Fill, Ranges: Ranges(m), Carry: o.Carry, Workers: workers})
}

// Options returns the parsed options.
func (s *Source) Options(workers int) (Options, error) {
	o := Options{Labels: s.Labels, Scale: s.Scale, Layout: Layout(s.Layout), Limit: s.Limit, Prefetch: s.Prefetch, Loaders: s.Loaders, Workers: workers, Columns: items(s.Columns), Classes: items(string(s.Classes))}
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
	o.Carry, e = parsePairs(s.Carry)
	take("carry", e)
	o.Step = int64(s.Step)
	return o, err
}

// parsePairs parses a list of items of the form output=input.
func parsePairs(list pass.List) ([]Pair, error) {
	var pairs []Pair
	for _, item := range items(string(list)) {
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
