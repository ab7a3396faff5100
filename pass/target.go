package pass

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Target is the runtimes that must run a model, and a kind of CPU with the options of methods that suit it. Nil is
// the default: every version of ONNX Runtime from 1.20 on, on any CPU.
type Target struct {
	Name        string    `json:"name"`
	CPU         string    `json:"cpu"` // description; empty if none is given
	Runtimes    []Runtime `json:"runtimes"`
	StandardOps bool      `json:"standard_ops"` // only operators of ONNX
	Choices     []Choice  `json:"choices"`

	cpuOnly bool // no runtime is named
}

// A Choice is an option that a target sets unless the caller set it or one of Unless.
type Choice struct {
	Method string     `json:"method"`
	Option string     `json:"option"`
	Value  string     `json:"value"` // in force
	Given  bool       `json:"given"` // the caller set another value
	Why    string     `json:"why"`   // the reason for the target's value
	Unless []string   `json:"-"`     // options that exclude it
	Need   Capability `json:"-"`     // of the target; 0 for none
}

// StandardOps is the word of a target that forbids operators outside of ONNX.
const StandardOps = "standard-ops"

// ParseTarget is the target of comma-separated names: runtimes, kinds of CPUs out of cpus, and standard-ops. Several
// runtimes are all to run the result. Several CPUs are any CPU.
func ParseTarget(text string, cpus []Target) (*Target, error) {
	t := &Target{}
	var names []string
	cpu := -1
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		r, ok := FindRuntime(name)
		at := slices.IndexFunc(cpus, func(c Target) bool { return c.Name == name })
		switch {
		case ok:
			t.Runtimes, name = append(t.Runtimes, *r), r.Name
		case at >= 0 && cpu >= 0 && cpu != at:
			// The last one is any CPU, whose options are exact on all.
			cpu = len(cpus) - 1
		case at >= 0:
			cpu = at
		case name == StandardOps:
			t.StandardOps = true
		default:
			return nil, fmt.Errorf("there are ort-1.17 and later, %s", strings.Join(TargetNames(cpus), ", "))
		}
		names = append(names, name)
	}
	t.Name = strings.Join(slices.Compact(names), ",")
	if len(t.Runtimes) == 0 {
		// A CPU alone limits no runtime: the default ones have to run the result.
		t.Runtimes, t.cpuOnly = defaultRuntimes(), true
	}
	t.adopt(cpus, cpu)
	return t, nil
}

// TargetNames are the words of targets, without versions.
func TargetNames(cpus []Target) []string {
	names := []string{"ort"}
	for _, r := range Runtimes {
		if _, version := minor(r.Name); !version {
			names = append(names, r.Name)
		}
	}
	for _, c := range cpus {
		names = append(names, c.Name)
	}
	return append(names, StandardOps)
}

// adopt adds the choices of runtimes, and those of a CPU that they leave open.
func (t *Target) adopt(cpus []Target, cpu int) {
	for _, r := range t.Runtimes {
		t.Choices = append(t.Choices, r.Choices...)
	}
	if cpu < 0 {
		return
	}
	t.CPU = cpus[cpu].CPU
	for _, c := range cpus[cpu].Choices {
		// What a runtime requires holds whatever suits the CPU.
		if !slices.ContainsFunc(t.Choices, c.sameOption) {
			t.Choices = append(t.Choices, c)
		}
	}
}

// Apply sets the options of t in steps, and returns the target with its choices for these steps and the values in
// force. The default target sets none.
func (t *Target) Apply(steps []Options) (*Target, error) {
	if t == nil {
		return nil, nil
	}
	applied := *t
	// Not nil: a report has an empty list for it.
	applied.Choices = []Choice{}
	for i := range steps {
		s := settable(steps[i])
		steps[i] = s
		for _, c := range t.Choices {
			if c.Method != s.Method().Name || !t.Can(c.Need) {
				continue
			}
			// Two runtimes that need different options have no common form.
			if o := slices.IndexFunc(t.Choices, c.conflicts); o >= 0 {
				return nil, OptionErrorf("target %s: its runtimes require %s %s and %s of %s", t.Name, c.Option, c.Value,
					t.Choices[o].Value, c.Method)
			}
			if err := prefer(s, &c); err != nil {
				return nil, fmt.Errorf("target %s: %s: %w", t.Name, c.Method, err)
			}
			if !slices.ContainsFunc(applied.Choices, c.same) {
				applied.Choices = append(applied.Choices, c)
			}
		}
	}
	return &applied, nil
}

// prefer sets an option of s to the value of c unless it is given, and sets c to the value in force.
func prefer(s Options, c *Choice) error {
	fs := flagsOf(s)
	// The caller chose the same: it counts as the target's choice, and not as overridden.
	if given(s, c.Option) && fs.Lookup(c.Option).Value.String() == c.Value {
		return nil
	}
	other := ""
	fs.VisitAll(func(f *flag.Flag) {
		if given(s, f.Name) && (f.Name == c.Option || slices.Contains(c.Unless, f.Name)) {
			other = f.Name
		}
	})
	if other == "" {
		return fs.Set(c.Option, c.Value)
	}
	c.Option, c.Value, c.Given = other, fs.Lookup(other).Value.String(), true
	return nil
}

func (c Choice) sameOption(o Choice) bool { return c.Method == o.Method && c.Option == o.Option }

func (c Choice) conflicts(o Choice) bool { return c.sameOption(o) && c.Value != o.Value }

// same reports whether o equals c except for the reason.
func (c Choice) same(o Choice) bool { return c.sameOption(o) && c.Value == o.Value }

// Overridden reports whether the caller set an option to another value than the target's.
func (t *Target) Overridden() bool {
	return slices.ContainsFunc(t.Choices, func(c Choice) bool { return c.Given })
}

// runtimes are those that must run the result.
func (t *Target) runtimes() []Runtime {
	if t == nil {
		return defaultRuntimes()
	}
	return t.Runtimes
}

// Can reports whether all runtimes of t have capabilities.
func (t *Target) Can(c Capability) bool { return t.lacks(c) == "" }

// lacks is the first runtime of t without capabilities; empty if there is none.
func (t *Target) lacks(c Capability) string {
	// The user's wish excludes operators before any runtime is asked.
	if t != nil && t.StandardOps && c&microsoft != 0 {
		return "--standard-ops"
	}
	for _, r := range t.runtimes() {
		if r.Can&c != c {
			return r.Name
		}
	}
	return ""
}

// Opset is the newest opset that all runtimes of t load.
func (t *Target) Opset() int64 {
	return slices.MinFunc(t.runtimes(), func(a, b Runtime) int { return int(a.Opset - b.Opset) }).Opset
}

// lowerIR lowers the IR version to the newest one that the runtimes named by t load, where nothing in the model needs a
// newer one. It reports whether it did.
func (t *Target) lowerIR(m *ir.Model) bool {
	if t == nil || t.cpuOnly {
		return false
	}
	newest := slices.MinFunc(t.Runtimes, func(a, b Runtime) int { return int(a.IR - b.IR) }).IR
	if m.IRVersion <= newest || neededIR(m) > newest {
		return false
	}
	m.IRVersion = newest
	return true
}

// checkVersions returns an *OptionError for a model that a runtime named by t does not load.
func (t *Target) checkVersions(m *ir.Model) error {
	if t == nil || t.cpuOnly {
		return nil
	}
	for _, r := range t.Runtimes {
		if v := m.Opset(""); v > r.Opset || m.IRVersion > r.IR {
			return OptionErrorf("target %s: %s loads models up to opset %d and IR version %d, this one has %d and %d; export "+
				"the model for it, or name another target", t.Name, r.Name, r.Opset, r.IR, v, m.IRVersion)
		}
	}
	return nil
}

// Without is why a form that needs capabilities is not used for t, as the detail of a reason.
func (t *Target) Without(c Capability) string {
	return fmt.Sprintf("%s lacks %s", t.lacks(c), c)
}
