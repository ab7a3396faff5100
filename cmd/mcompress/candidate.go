package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/pass"
)

// A candidate is a method that may be chosen, and options of its own.
type candidate struct {
	method  *pass.Method
	options []pass.Option
}

// String is the candidate as parseCandidate takes it.
func (c candidate) String() string {
	word := c.method.Name
	for _, o := range c.options {
		word += ":" + o.Name + "=" + o.Value
	}
	return word
}

// parseCandidate reads METHOD:NAME=VALUE:...
func parseCandidate(word string, o *mcli.MethodOptions) (c candidate, err error) {
	parts := strings.Split(word, ":")
	i := slices.IndexFunc(o.Methods, func(m *pass.Method) bool { return m.Name == parts[0] })
	if i < 0 {
		return c, fmt.Errorf("there is no method %q", parts[0])
	}
	c.method = o.Methods[i]
	for _, part := range parts[1:] {
		name, value, valued := strings.Cut(part, "=")
		f := pass.Flags(c.method).Lookup(name)
		if f == nil {
			return c, fmt.Errorf("%s has no option %q", c.method.Name, name)
		}
		if !valued {
			value = "true"
		}
		if err := f.Value.Set(value); err != nil {
			return c, fmt.Errorf("%s: invalid value %q for %s: %w", c.method.Name, value, name, err)
		}
		c.options = append(c.options, pass.Option{Name: name, Value: value})
	}
	return c, nil
}

// usual is the candidate without those of its own options that were given for all methods. Where there are samples, errors of rounding
// in blocks are made up for.
func (c candidate) usual(o *mcli.MethodOptions, data bool) candidate {
	if data && pass.Flags(c.method).Lookup("algo") != nil && pass.Flags(c.method).Lookup("algo").DefValue != "" {
		c.options = append(c.options, pass.Option{Name: "algo", Value: "gptq"})
	}
	c.options = slices.DeleteFunc(c.options, func(own pass.Option) bool {
		return slices.ContainsFunc(o.Given(), func(g pass.Option) bool { return g.Name == own.Name })
	})
	return c
}

// tuned is the candidate for a search: with those of the given options that it has, and its own.
func (c candidate) tuned(given *mcli.MethodOptions, ranges string) tune.Candidate {
	return tune.Candidate{Name: c.String(), Step: func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
		return pass.NewStep(c.method, func(fs *flag.FlagSet) error {
			var but []string // options that who called did not say
			for _, own := range c.options {
				but = append(but, own.Name)
			}
			if only != nil {
				but = append(but, "only")
			}
			if err := errors.Join(given.Fill(fs, but...), set(fs, c.options)); err != nil {
				return err
			}
			options := whileTrying(fs, phase, calibrate, ranges)
			for _, g := range only {
				options = append(options, pass.Option{Name: "only", Value: g})
			}
			return set(fs, options)
		})
	}}
}

// set gives fs options, which it has.
func set(fs *flag.FlagSet, options []pass.Option) error {
	for _, o := range options {
		if err := fs.Set(o.Name, o.Value); err != nil {
			return err
		}
	}
	return nil
}

// whileTrying are options of a step that is not the last: some samples are kept from it, ranges are taken from samples once, and weights are
// measured as the nearest codes, which gptq only makes better, and takes long for.
func whileTrying(fs *flag.FlagSet, phase tune.Phase, calibrate int, ranges string) []pass.Option {
	var options []pass.Option
	if calibrate > 0 && phase < tune.Final && fs.Lookup("calibrate") != nil {
		options = append(options, pass.Option{Name: "calibrate", Value: strconv.Itoa(calibrate)})
	}
	file := map[tune.Phase]string{tune.First: "save-ranges", tune.Measuring: "ranges", tune.Trying: "ranges"}[phase]
	if fs.Lookup(file) != nil {
		options = append(options, pass.Option{Name: file, Value: ranges})
	}
	if f := fs.Lookup("algo"); f != nil && f.Value.String() == "gptq" && phase < tune.Trying {
		options = append(options, pass.Option{Name: "algo", Value: "rtn"})
	}
	return options
}
