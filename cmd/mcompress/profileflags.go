package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/profile"
)

// profileFlags are the flags that measure the steps of training. They are of the command, not of the method: recipes and reports do not have them.
type profileFlags struct {
	on    bool
	trace string
}

func (p *profileFlags) flags() []cli.Flag {
	return group("profiling", func(fs *flag.FlagSet) {
		fs.BoolVar(&p.on, "profile", false, "print time and memory of a step by phase and operator, the values at the peak, and memory that grows")
		outPathVar(fs, &p.trace, "trace", "`file` for the first steps as a trace for Perfetto and Chrome")
	})
}

// check rejects invalid combinations of flags.
func (p *profileFlags) check(models []string) error {
	switch {
	case p.trace != "" && !p.on:
		return usagef("--trace requires --profile")
	case p.trace != "" && len(models) > 1:
		return usagef("--trace requires one model")
	}
	return nil
}

// write writes the trace of the training of a model.
func (p *profileFlags) write(model string, r *profile.Recorder) error {
	if p.trace == "" || r.Profile() == nil {
		return nil
	}
	return writeFrom(model, p.trace, r.Trace)
}
