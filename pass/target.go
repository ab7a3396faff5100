package pass

import (
	"flag"
	"fmt"
	"slices"
)

// A Target is a kind of CPU, with the options of methods that suit it.
type Target struct {
	Name    string   `json:"name"`
	CPU     string   `json:"cpu"` // description
	Choices []Choice `json:"choices"`
}

// A Choice is an option that a target sets unless the caller set it or one of Unless.
type Choice struct {
	Method string   `json:"method"`
	Option string   `json:"option"`
	Value  string   `json:"value"` // in force
	Given  bool     `json:"given"` // the caller set another value
	Why    string   `json:"why"`   // the reason for the target's value
	Unless []string `json:"-"`     // options that exclude it
}

// Apply sets the options of t in steps, and returns the target with its choices for these steps and the values in force.
func (t Target) Apply(steps []Options) (*Target, error) {
	applied := &Target{Name: t.Name, CPU: t.CPU, Choices: []Choice{}}
	for i := range steps {
		s := settable(steps[i])
		steps[i] = s
		for _, c := range t.Choices {
			if c.Method != s.Method().Name {
				continue
			}
			if err := prefer(s, &c); err != nil {
				return nil, fmt.Errorf("target %s: %s: %w", t.Name, c.Method, err)
			}
			if !slices.ContainsFunc(applied.Choices, c.same) {
				applied.Choices = append(applied.Choices, c)
			}
		}
	}
	return applied, nil
}

// prefer sets an option of s to the value of c unless it is given, and sets c to the value in force.
func prefer(s Options, c *Choice) error {
	fs := flagsOf(s)
	other := ""
	fs.VisitAll(func(f *flag.Flag) {
		if given(s, f.Name) && (f.Name == c.Option && f.Value.String() != c.Value || slices.Contains(c.Unless, f.Name)) {
			other = f.Name
		}
	})
	if other == "" {
		return fs.Set(c.Option, c.Value)
	}
	c.Option, c.Value, c.Given = other, fs.Lookup(other).Value.String(), true
	return nil
}

// same reports whether o equals c except for the reason.
func (c Choice) same(o Choice) bool {
	return c.Method == o.Method && c.Option == o.Option && c.Value == o.Value
}

// Overridden reports whether the caller set an option to another value than the target's.
func (t *Target) Overridden() bool {
	return slices.ContainsFunc(t.Choices, func(c Choice) bool { return c.Given })
}
