package mcompress

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// A candidate is a method that a search can choose, with its options.
type candidate struct {
	method  *pass.Method
	options []pass.Option
}

// String returns the candidate in the syntax of parseCandidate.
func (c candidate) String() string {
	word := c.method.Name
	for _, o := range c.options {
		word += ":" + o.Name + "=" + o.Value
	}
	return word
}

// parseCandidate reads METHOD:NAME=VALUE:...
func parseCandidate(word string) (c candidate, err error) {
	parts, methods := strings.Split(word, ":"), quantize.Methods()
	i := slices.IndexFunc(methods, func(m *pass.Method) bool { return m.Name == parts[0] })
	if i < 0 {
		return c, fmt.Errorf("there is no method %q", parts[0])
	}
	c.method = methods[i]
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

// withoutGiven returns a default candidate without those of its options that were given for all methods. With
// calibration data, weight-only methods use GPTQ.
func (c candidate) withoutGiven(given []pass.Option, data bool) candidate {
	if data && pass.Flags(c.method).Lookup("algo") != nil && pass.Flags(c.method).Lookup("algo").DefValue != "" {
		c.options = append(c.options, pass.Option{Name: "algo", Value: "gptq"})
	}
	c.options = slices.DeleteFunc(c.options, func(own pass.Option) bool {
		return slices.ContainsFunc(given, func(g pass.Option) bool { return g.Name == own.Name })
	})
	return c
}

// tuned returns the candidate for a search, with the given options that its method has and its own.
func (c candidate) tuned(given []pass.Option, ranges string) tune.Candidate {
	return tune.Candidate{Name: c.String(),
		Step: func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
			return pass.NewStep(c.method, func(fs *flag.FlagSet) error {
				var but []string // given options that are replaced
				for _, own := range c.options {
					but = append(but, own.Name)
				}
				if only != nil {
					but = append(but, "only")
				}
				if err := errors.Join(fill(fs, given, but...), set(fs, c.options)); err != nil {
					return err
				}
				options := phaseOptions(fs, phase, calibrate, ranges)
				for _, g := range only {
					options = append(options, pass.Option{Name: "only", Value: g})
				}
				return set(fs, options)
			})
		}}
}

// fill sets those of the given options that fs has, but for those of these names.
func fill(fs *flag.FlagSet, given []pass.Option, but ...string) error {
	for _, g := range given {
		if fs.Lookup(g.Name) == nil || slices.Contains(but, g.Name) {
			continue
		}
		if err := fs.Set(g.Name, g.Value); err != nil {
			return pass.OptionErrorf("invalid value %q for --%s: %w", g.Value, g.Name, err)
		}
	}
	return nil
}

// set sets options of fs.
func set(fs *flag.FlagSet, options []pass.Option) error {
	for _, o := range options {
		if err := fs.Set(o.Name, o.Value); err != nil {
			return err
		}
	}
	return nil
}

// phaseOptions returns the options of a step in a phase of the search: saved activation ranges, and round to nearest in
// place of GPTQ, which is slower and at least as accurate. The calibration samples and the rule for scales are those of
// the result, too, for which the gates were evaluated.
func phaseOptions(fs *flag.FlagSet, phase tune.Phase, calibrate int, ranges string) []pass.Option {
	var options []pass.Option
	if calibrate > 0 && fs.Lookup("calibrate") != nil {
		options = append(options, pass.Option{Name: "calibrate", Value: strconv.Itoa(calibrate)})
	}
	file := map[tune.Phase]string{tune.First: "save-ranges", tune.Measuring: "ranges", tune.Trying: "ranges"}[phase]
	if fs.Lookup(file) != nil {
		options = append(options, pass.Option{Name: file, Value: ranges})
	}
	if f := fs.Lookup("search"); f != nil && f.Value.String() == "auto" {
		options = append(options, pass.Option{Name: "search", Value: "mse"})
	}
	if f := fs.Lookup("algo"); f != nil && f.Value.String() == "gptq" && phase < tune.Trying {
		options = append(options, pass.Option{Name: "algo", Value: "rtn"})
	}
	return options
}
