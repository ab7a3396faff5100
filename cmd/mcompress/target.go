package main

import (
	"flag"
	"strings"

	"github.com/urfave/cli/v2"

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

// String is the target that the flags name; empty for the default.
func (a *targetFlag) String() string {
	var words []string
	if a.names != "" {
		words = append(words, string(a.names))
	}
	if a.standardOps {
		words = append(words, pass.StandardOps)
	}
	return strings.Join(words, ",")
}
