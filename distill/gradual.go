package distill

import (
	"flag"
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// Gradual is the options of pruning in steps.
type Gradual struct {
	// Schedule is the amount after each pruning step: cubic, the default (most in the first steps), linear or constant
	// (all in the first step).
	Schedule string `flag:"schedule" default:"cubic" enum:"cubic,linear,constant" usage:"pruning 'schedule', the amount after each pruning step: cubic (most in the first steps), linear, constant (all in the first step)"`
	// Steps is the number of pruning steps, with training after each; 0 for 10.
	Steps int `flag:"steps" default:"10" usage:"'number' of pruning steps, with training after each"`
}

// pruningSchedules return the fraction of the final amount after a fraction of the steps. Cubic is the one of Zhu and
// Gupta (To prune, or not to prune, 2017, arXiv:1710.01878, section 3).
var pruningSchedules = map[string]func(t float64) float64{
	"cubic":    func(t float64) float64 { return 1 - (1-t)*(1-t)*(1-t) },
	"linear":   func(t float64) float64 { return t },
	"constant": func(float64) float64 { return 1 },
}

// fractionAt returns the fraction of the final amount after step i, from 1.
func (g *Gradual) fractionAt(i int) float64 {
	return pruningSchedules[g.Schedule](float64(i) / float64(g.Steps))
}

// maxPruningSteps is the limit of --steps.
const maxPruningSteps = 1000

// validate reports invalid values, and those of the training after each step.
func (g *Gradual) validate(train *FineTune) error {
	switch {
	case g.Steps < 1 || g.Steps > maxPruningSteps:
		return pass.OptionErrorf("--steps %d: must be between 1 and %d", g.Steps, maxPruningSteps)
	case train.Steps < 0:
		return pass.OptionErrorf("--training-steps %d: must be a positive number", train.Steps)
	}
	return train.Check()
}

// A Pruning is a pruning method with its options. As an option it is text such as "l1-global amount=0.95".
type Pruning struct{ prune.Gradual }

// String is the method with the values of its options, but for the selection of weights, which is that of the step.
func (p *Pruning) String() string {
	if p.Gradual == nil {
		return ""
	}
	words := []string{p.Method().Name}
	for _, o := range pass.Values(p.Gradual) {
		if o.Value != "" && !SelectsWeights(o.Name) {
			words = append(words, o.Name+"="+o.Value)
		}
	}
	return strings.Join(words, " ")
}

// SelectsWeights reports whether an option of that name selects weights, which is an option of the step and not of its
// pruning method.
func SelectsWeights(option string) bool {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	pass.Declare(fs, &pass.Selection{})
	return fs.Lookup(option) != nil
}

// Set parses the name of a method and its options.
func (p *Pruning) Set(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return fmt.Errorf("a method is missing; use one of %s", strings.Join(gradualMethods(), ", "))
	}
	for _, m := range prune.Methods() {
		if m.Name != words[0] {
			continue
		}
		o, err := pass.NewStep(m, pass.Assignments(words[1:]))
		if err != nil {
			return err
		}
		return p.set(o)
	}
	return fmt.Errorf("unknown method %q; use one of %s", words[0], strings.Join(gradualMethods(), ", "))
}

func (p *Pruning) set(o pass.Options) error {
	g, ok := o.(prune.Gradual)
	if !ok {
		return pass.OptionErrorf("%s prunes in one step only; in several steps prune %s", o.Method().Name,
			strings.Join(gradualMethods(), ", "))
	}
	p.Gradual = g
	return nil
}

// gradualMethods are the names of the methods that can prune in steps.
func gradualMethods() []string {
	var names []string
	for _, m := range prune.Methods() {
		if _, ok := m.New().(prune.Gradual); ok {
			names = append(names, m.Name)
		}
	}
	return names
}
