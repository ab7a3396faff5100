package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// A targetFlag is the flag --target; "" leaves all options as they are.
type targetFlag struct{ name mcli.Enum }

func newTargetFlag() targetFlag {
	var names []string
	for _, t := range quantize.Targets {
		names = append(names, t.Name)
	}
	return targetFlag{mcli.Enum{Words: names}}
}

func (a *targetFlag) flags() []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		fs.Var(&a.name, "target", "`CPU` that ONNX Runtime will run the result on: sets quantized data types and block sizes that are not given; cpu-avx2 avoids the saturation of full-range int8 weights on x86 CPUs without VNNI")
	})
}

// apply sets the options of the target in steps, and returns the target for the report; nil without --target.
func (a *targetFlag) apply(steps []pass.Options) (*pass.Target, error) {
	for _, t := range quantize.Targets {
		if t.Name == a.name.Value {
			return t.Apply(steps)
		}
	}
	return nil, nil
}

// candidates sets the options of the target in the steps of candidates.
func (a *targetFlag) candidates(cs []tune.Candidate) {
	for i, c := range cs {
		cs[i].Step = func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
			step, err := c.Step(only, phase, calibrate)
			if err == nil {
				_, err = a.apply([]pass.Options{step})
			}
			return step, err
		}
	}
}
