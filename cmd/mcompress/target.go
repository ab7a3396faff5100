package main

import (
	"flag"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// A targetFlag is the flags --target and --standard-ops. Without them the target is the default one.
type targetFlag struct {
	names       targetNames
	standardOps bool
}

// targetNames are the names of a target, separated by commas.
type targetNames string

func (n *targetNames) String() string { return string(*n) }

// Choices returns the values for completion.
func (n *targetNames) Choices() []string { return pass.TargetNames(quantize.CPUs) }

// Set accepts names of runtimes and CPUs.
func (n *targetNames) Set(text string) error {
	_, err := pass.ParseTarget(text, quantize.CPUs)
	*n = targetNames(text)
	return err
}

func (a *targetFlag) flags() []cli.Flag {
	return group("target", func(fs *flag.FlagSet) {
		fs.Var(&a.names, "target", "comma-separated `runtimes` that must run the result, and a CPU: ort (the newest ONNX Runtime), ort-1.20, ort-1.17, web, webgpu, openvino, opencv, tract, genai, qnn, tensorrt; cpu-avx2, cpu-vnni, arm64, any; sets forms of weights, data types, block sizes and opsets that are not given (default: loads in every ONNX Runtime from 1.20 on, and is not slower there than the source)")
		fs.BoolVar(&a.standardOps, "standard-ops", false, "only operators of ONNX, none of com.microsoft")
	})
}

// target is the target that the flags name, nil for the default.
func (a *targetFlag) target() (*pass.Target, error) {
	var words []string
	if a.names != "" {
		words = append(words, string(a.names))
	}
	if a.standardOps {
		words = append(words, pass.StandardOps)
	}
	if words == nil {
		return nil, nil
	}
	return pass.ParseTarget(strings.Join(words, ","), quantize.CPUs)
}

// apply sets the options of the target in steps, and returns the target; nil for the default.
func (a *targetFlag) apply(steps []pass.Options) (*pass.Target, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	return t.Apply(steps)
}

// candidates are cs with the options of the target. Those without a form for it, and those known to be slower than
// float there, are left out of the default ones; given ones without a form are an error.
func (a *targetFlag) candidates(cs []tune.Candidate, given bool) ([]tune.Candidate, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	var runs []tune.Candidate
	for _, c := range cs {
		step, err := c.Step(nil, tune.Trying, 0)
		if err == nil {
			err = t.Check([]pass.Options{step})
		}
		switch {
		case err != nil && given:
			return nil, err
		case err == nil && (given || t == nil || t.Slower(step) == ""):
			runs = append(runs, tune.Candidate{Name: c.Name, Step: withTarget(t, c.Step)})
		}
	}
	return runs, nil
}

// withTarget returns the steps of a candidate with the options of t.
func withTarget(t *pass.Target, step func(pass.Globs, tune.Phase, int) (pass.Options, error)) func(pass.Globs, tune.Phase, int) (pass.Options, error) {
	return func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
		o, err := step(only, phase, calibrate)
		if err == nil {
			_, err = t.Apply([]pass.Options{o})
		}
		return o, err
	}
}
