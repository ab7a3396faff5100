package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// A methodCommand runs one method, which one of its flags names.
type methodCommand struct {
	command  string
	choose   string // the flag that names the method
	method   string // the default
	usage    string
	more     func(fs *flag.FlagSet, chosen *mcli.Enum, w *requestFlags)       // flags of its own; may be nil
	prepare  *preparing                                                       // puts steps in front; may be nil
	other    pass.Options                                                     // the alternative for results that are hardly smaller; may be nil
	auto     *searchFlags                                                     // lets methods be chosen by measurement; may be nil
	then     func(name string, o *mcli.MethodOptions) ([]pass.Options, error) // the steps after the method; may be nil
	gradual  bool                                                             // --schedule runs the method in steps, with training after each
	variants *variantFlag                                                     // writes several results; may be nil
}

func (m methodCommand) build(t *tool) *cli.Command {
	w := newRequestFlags()
	options := &mcli.MethodOptions{Methods: offered(m.command)}
	w.options = options
	chosen := &methodChoice{Enum: mcli.Enum{Value: m.method, Words: names(options.Methods)}}
	common := w.flags() // declares those that methods share
	options.Shared = func(name string) bool { return flagNamed(common, name) != nil }
	var test testSet
	own := group("flags", func(fs *flag.FlagSet) {
		fs.Var(chosen, m.choose, "`name` from the list above")
		if m.more != nil {
			m.more(fs, &chosen.Enum, w)
		}
	})
	if m.auto != nil {
		own = append(own, m.auto.flags()...)
	}
	if m.variants != nil {
		own = append(own, m.variants.flags()...)
	}
	if m.prepare != nil {
		own = append(own, m.prepare.flags()...)
	}
	if m.command == "quantize" || m.command == "sparse" {
		own = append(own, w.target.flags()...)
	}
	offers := options.Offers()
	flags := distinct(own, methodFlags(offers, common), m.testFlags(options, &test), common, w.list.flags())
	chosen.limitHelp(flags, options.Methods, offers)
	return &cli.Command{
		Name:        m.command,
		Usage:       m.usage,
		ArgsUsage:   "MODEL...",
		Description: describe(m.choose, options.Methods) + fmt.Sprintf("\n\nThe options of a method: mcompress %s --%s NAME --help", m.command, m.choose),
		Flags:       flags,
		Action: func(c *cli.Context) error {
			models, err := w.list.models(c, c.Args().Slice())
			if err != nil {
				return err
			}
			if m.variants != nil && m.variants.dtypes != nil {
				for _, name := range append([]string{m.choose, "auto", "sensitivity", "equalize", "smooth", "export-dir"}, listNames...) {
					if c.IsSet(name) {
						return usagef("--variants and --%s exclude each other", name)
					}
				}
				return m.variants.run(c, t, options, models, w, test)
			}
			if m.auto != nil {
				switch ok, err := m.auto.requested(); {
				case err != nil:
					return err
				case ok:
					return m.auto.run(c, t, options, models, w, test)
				}
			}
			step, err := m.step(chosen.Value, options)
			if err != nil {
				return &usageError{err}
			}
			var steps []pass.Options
			if m.prepare != nil {
				if steps, err = m.prepare.steps(chosen.Value, options); err != nil {
					return err
				}
			}
			steps = append(steps, step)
			if m.then != nil {
				after, err := m.then(chosen.Value, options)
				if err != nil {
					return err
				}
				steps = append(steps, after...)
			}
			if err := w.adopt(step, options, common, test); err != nil {
				return err
			}
			w.Alternative, w.Label, w.Steps = m.other, chosen.Value, steps
			return w.run(c, t, models)
		},
	}
}

// step returns the step of the named method, with the options that were given.
func (m methodCommand) step(name string, o *mcli.MethodOptions) (pass.Options, error) {
	if m.gradual && o.IsGiven("schedule") && o.Method(name).Stage != pass.Train {
		return inSteps(name, o)
	}
	return o.Step(name)
}

// adopt sets the flags of verification by the given options: all that the step has not, and those of its data. A step that trains is verified
// like those of finetune.
func (w *requestFlags) adopt(step pass.Options, o *mcli.MethodOptions, common []cli.Flag, test testSet) error {
	own := map[string]bool{}
	for _, v := range pass.Values(step) {
		own[v.Name] = true
	}
	for _, g := range o.Given() {
		if f := flagNamed(common, g.Name); f != nil && !own[g.Name] && !w.samples.sampling.shares(g.Name) {
			if err := f.flag.Value.Set(g.Value); err != nil {
				return usagef("invalid value %q for --%s: %v", g.Value, g.Name, err)
			}
		}
	}
	if step.Method().Stage == pass.Train {
		return w.verifyTrained(o, test)
	}
	return w.samples.sampling.adopt(o.Given(), test)
}

// flagNamed returns the flag of this name, nil if there is none.
func flagNamed(flags []cli.Flag, name string) *option {
	for _, f := range flags {
		if f := f.(*option); f.Name == name {
			return f
		}
	}
	return nil
}

// testFlags returns the flags of the test set, if a method has calibration data.
func (m methodCommand) testFlags(o *mcli.MethodOptions, test *testSet) []cli.Flag {
	for _, offer := range o.Offers() {
		if offer.Name == "data" {
			return test.flags()
		}
	}
	return nil
}

// distinct are the flags of all lists. Of two with one name the first stays: a method's --seed is
// about weights, and random inputs then have seed 0.
func distinct(lists ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	known := map[string]bool{}
	for _, f := range slices.Concat(lists...) {
		if name := f.Names()[0]; !known[name] {
			known[name] = true
			all = append(all, f)
		}
	}
	return byCategory(all)
}

// byCategory are flags with those of one category together, categories in the order of their first flags.
func byCategory(flags []cli.Flag) []cli.Flag {
	var order []string
	for _, f := range flags {
		if c := f.(*option).Category; !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(flags, func(a, b cli.Flag) int {
		return slices.Index(order, a.(*option).Category) - slices.Index(order, b.(*option).Category)
	})
	return flags
}
