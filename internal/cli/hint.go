package cli

import (
	"runtime"

	"golang.org/x/sys/cpu"

	"github.com/mcompress/mcompress/pass"
)

// saturation is about products of unsigned activations and full-range signed weights.
const saturation = "on x86 CPUs without VNNI, ONNX Runtime's products with full-range int8 weights may saturate; to run the model there, use --target cpu-avx2, --reduce-range or --weight-type uint8"

// Hints are limitations of the result at run time, which the report lists. With a target there are none,
// unless options override it.
func Hints(steps []pass.Options, target *pass.Target) []string {
	if target != nil && !target.Overridden() {
		return nil
	}
	for _, s := range steps {
		integers := s.Method().Name == "dynamic-int8" || s.Method().Name == "static-int8"
		if integers && value(s, "weight-type") == "int8" && value(s, "reduce-range") == "false" {
			return []string{saturation}
		}
	}
	return nil
}

func value(s pass.Options, name string) string {
	for _, o := range pass.Values(s) {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}

// Saturates reports whether products of uint8 with int8 saturate in ONNX Runtime on this CPU.
func Saturates() bool {
	return runtime.GOARCH == "amd64" && !cpu.X86.HasAVX512VNNI && !cpu.X86.HasAVXVNNI
}

// TerminalHints are the hints that are relevant on the terminal: those of options that overrule a
// target, and those of results that ONNX Runtime ran in verification on a CPU that they are about. The
// embedded engine does not saturate.
func (b Batch) TerminalHints(onnxRuntime bool) []string {
	return b.terminalHints(onnxRuntime && Saturates())
}

func (b Batch) terminalHints(saturated bool) []string {
	for _, o := range b {
		if o.Err != nil || o.Result.Report.Coverage.ChangedBytes == 0 {
			continue
		}
		r := o.Result.Report
		verified := r.Verification != nil && r.Verification.Skipped == ""
		if r.Target != nil || saturated && verified {
			if len(r.Hints) > 0 {
				return r.Hints
			}
		}
	}
	return nil
}
