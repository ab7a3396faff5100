package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// An aimed is the name of the target that steps get their options for, or "".
type aimed struct{ name mcli.Enum }

func newAimed() aimed {
	var names []string
	for _, t := range quantize.Targets {
		names = append(names, t.Name)
	}
	return aimed{mcli.Enum{Words: names}}
}

func (a *aimed) flags() []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		fs.Var(&a.name, "target", "`CPU` that ONNX Runtime will run the result on: sets quantized data types and block sizes that are not given; cpu-avx2 avoids the saturation of full-range int8 weights on x86 CPUs without VNNI")
	})
}

// aim gives steps the options of the target, and returns what the report says of it; nil if there is none.
func (a *aimed) aim(steps []pass.Options) (*pass.Target, error) {
	for _, t := range quantize.Targets {
		if t.Name == a.name.Value {
			return t.Apply(steps)
		}
	}
	return nil, nil
}

// candidates lets steps that are tried have the options of the target, too.
func (a *aimed) candidates(cs []tune.Candidate) {
	for i, c := range cs {
		cs[i].Step = func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
			step, err := c.Step(only, phase, calibrate)
			if err == nil {
				_, err = a.aim([]pass.Options{step})
			}
			return step, err
		}
	}
}
