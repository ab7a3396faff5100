package pass

import (
	"flag"
	"fmt"
	"slices"
)

// A Target is a kind of CPU that a model is to run on, and what follows for the options of methods.
type Target struct {
	Name    string   `json:"name"`
	CPU     string   `json:"cpu"` // in words
	Choices []Choice `json:"choices"`
}

// A Choice is an option that a target decides, unless the caller gave it or another one of the same matter.
type Choice struct {
	Method string   `json:"method"`
	Option string   `json:"option"`
	Value  string   `json:"value"` // in force
	Given  bool     `json:"given"` // by the caller, who wanted another
	Why    string   `json:"why"`   // of what the target wants
	Unless []string `json:"-"`     // options of the same matter
}

// Aim gives steps the options that t wants, and returns those of its choices that are about one of them, as they came out.
func (t Target) Apply(steps []Options) (*Target, error) {
	aimed := &Target{Name: t.Name, CPU: t.CPU, Choices: []Choice{}}
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
			if !slices.ContainsFunc(aimed.Choices, c.same) {
				aimed.Choices = append(aimed.Choices, c)
			}
		}
	}
	return aimed, nil
}

// prefer sets an option of s to the value of c, unless it is given, and leaves in c the value in force.
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

// same reports whether o is c but for its reason.
func (c Choice) same(o Choice) bool {
	return c.Method == o.Method && c.Option == o.Option && c.Value == o.Value
}

// Overruled reports whether the caller gave what the target would not have chosen.
func (t *Target) Overridden() bool {
	return slices.ContainsFunc(t.Choices, func(c Choice) bool { return c.Given })
}
