package pass

import (
	"cmp"
	"slices"
	"strings"
)

// A Requirement is a capability without which a method, or a value of an option, has no form.
type Requirement struct {
	Capability
	Option  string // "--form matmulnbits", which needs no target; empty for the method itself
	Nearest string // the nearest method or option that has a form
}

// A requirer is an option struct with requirements. Defaults are in place.
type requirer interface{ Requires() []Requirement }

// Check returns an *OptionError for a step that has no form for t.
func (t *Target) Check(steps []Options) error {
	for _, o := range steps {
		o, err := resolved(o)
		if err != nil {
			return err
		}
		r, ok := o.(requirer)
		if !ok {
			continue
		}
		for _, need := range r.Requires() {
			// Without a target, an option that the caller gave is itself a statement about the runtime; a method by default
			// has to run in all of the default ones.
			if lacking := t.lacks(need.Capability); lacking != "" && (t != nil || need.Option == "") {
				return t.unsupported(cmp.Or(need.Option, o.Method().Name), lacking, need)
			}
		}
	}
	return nil
}

// unsupported is the error of a method or option that a runtime lacks.
func (t *Target) unsupported(what, lacking string, need Requirement) error {
	if t != nil {
		return OptionErrorf("%s: not supported by %s (target %s); the nearest that is: %s", what, lacking, t.Name,
			need.Nearest)
	}
	var names []string
	for _, r := range slices.Backward(Runtimes) {
		if r.Can&need.Capability == need.Capability && r.Untested == "" {
			names = append(names, r.Name)
		}
	}
	return OptionErrorf("%s: not supported by %s; use %s, or name the runtime with --target: %s", what, lacking,
		need.Nearest, strings.Join(names, ", "))
}
