package main

import (
	"flag"
	"fmt"
	"math"
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
	more     func(fs *flag.FlagSet, chosen *mcli.Enum, w *writing) // flags of its own; may be nil
	prepare  *preparing                                            // puts steps in front; may be nil
	other    pass.Options                                          // the alternative for results that are hardly smaller; may be nil
	auto     *automatic                                            // lets methods be chosen by measurement; may be nil
	variants *variantSet                                           // writes several results; may be nil
}

func (m methodCommand) build(t *tool) *cli.Command {
	w := newWriting()
	samples := &w.proving.sampling
	options := &mcli.MethodOptions{Methods: offered(m.command), Shared: samples.shares}
	chosen := &methodChoice{Enum: mcli.Enum{Value: m.method, Words: names(options.Methods)}}
	common := w.flags() // declares those that methods share
	var test testSet
	own := group("flags", func(fs *flag.FlagSet) {
		fs.Var(chosen, m.choose, "`name` from the list above")
		if m.more != nil {
			m.more(fs, &chosen.Enum, w)
		}
	})
	if m.auto != nil {
		m.auto.target, m.auto.strip = &w.target, &w.strip
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
	flags := distinct(own, methodFlags(options, samples), m.testFlags(options, &test), common)
	chosen.limitHelp(flags, options)
	return &cli.Command{
		Name:        m.command,
		Usage:       m.usage,
		ArgsUsage:   "MODEL...",
		Description: describe(m.choose, options.Methods) + fmt.Sprintf("\n\nThe options of a method: mcompress %s --%s NAME --help", m.command, m.choose),
		Flags:       flags,
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			if m.variants != nil && m.variants.chosen != nil {
				for _, name := range []string{m.choose, "auto", "sensitivity", "equalize", "smooth", "export-dir"} {
					if c.IsSet(name) {
						return usagef("--variants and --%s exclude each other", name)
					}
				}
				return m.variants.run(c, t, options, models, w, test)
			}
			if m.auto != nil {
				switch ok, err := m.auto.requested(w.proving); {
				case err != nil:
					return err
				case ok:
					return m.auto.run(c, t, options, models, w, test)
				}
			}
			step, err := options.Step(chosen.Value)
			if err != nil {
				return &usageError{err}
			}
			var steps []pass.Options
			if m.prepare != nil {
				if steps, err = m.prepare.steps(chosen.Value, options); err != nil {
					return err
				}
			}
			if err := samples.adopt(options.Given(), test); err != nil {
				return err
			}
			w.alternative = m.other
			return w.compress(c, t, models, chosen.Value, append(steps, step))
		},
	}
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
