package mcompress

import (
	"context"
	"reflect"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Step is an argument of Compress: the option struct of a method, such as quantize.DynamicInt8{}, or an Option, such as
// WithData("samples.npz"). Methods run in the order in which they are given.
type Step interface {
	// Method is the description of the method, nil for an Option.
	Method() *pass.Method
}

// A Result is a compressed model.
type Result struct {
	Output   string         // path of the model, its name for CompressTo; empty after a dry run
	Rejected bool           // a gate did not hold: the name of the output ends in .rejected.onnx
	NotRun   string         // why the output was not verified although it should have been; empty if it was
	Reports  []string       // paths of the written reports
	Warnings []string       // steps that should run in another order
	Report   *report.Report // sizes, the form and error of each weight, verification, gates
}

// Compress compresses the model at path in and writes it to path out, atomically and with a data file next to it where the model
// needs one. Without steps it copies the model. An error leaves no output; a gate that does not hold is no error. Errors about the
// content of the model are *onnx.FormatError, those about steps and options *pass.OptionError.
func Compress(ctx context.Context, in, out string, steps ...Step) (*Result, error) {
	s, methods, err := split(steps)
	if err != nil {
		return nil, err
	}
	return compress(ctx, job.Options{Input: in, Output: out}, s, methods)
}

func compress(ctx context.Context, o job.Options, s *settings, methods []pass.Options) (*Result, error) {
	var err error
	if o.Steps, o.Target, err = s.steps(methods); err != nil {
		return nil, err
	}
	if err := s.apply(&o); err != nil {
		return nil, err
	}
	if o.Output == "" && !o.DryRun {
		return nil, pass.OptionErrorf("the path of the output is empty")
	}
	res, err := job.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Result{Output: res.Output, Rejected: res.Rejected, NotRun: res.NotRun, Reports: res.Reports, Warnings: pass.Warnings(o.Steps), Report: res.Report}, nil
}

// split separates options from methods.
func split(steps []Step) (*settings, []pass.Options, error) {
	s := &settings{}
	var methods []pass.Options
	for i, step := range steps {
		if v := reflect.ValueOf(step); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, nil, pass.OptionErrorf("step %d is nil", i+1)
		}
		switch step := step.(type) {
		case Option:
			if step != nil {
				step(s)
			}
		case pass.Options:
			methods = append(methods, step)
		default:
			return nil, nil, pass.OptionErrorf("step %d: %T is neither the option struct of a method nor an Option", i+1, step)
		}
	}
	return s, methods, nil
}
