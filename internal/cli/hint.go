package cli

import (
	"runtime"

	"golang.org/x/sys/cpu"

	"github.com/mcompress/mcompress/pass"
)

// saturation is about products of unsigned activations and full-range signed weights.
const saturation = "on x86 CPUs without VNNI, ONNX Runtime's products with full-range int8 weights may saturate; to run the model there, use --target cpu-avx2, --reduce-range or --weight-type uint8"

// Hints are what to know about the results of steps; the report lists them. A target leaves none,
// unless options overrule it.
func Hints(steps []pass.Options, target *pass.Target) []string {
	if target != nil && !target.Overruled() {
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

// saturates reports whether the hint is about this machine.
func saturates() bool {
	return runtime.GOARCH == "amd64" && !cpu.X86.HasAVX512VNNI && !cpu.X86.HasAVXVNNI
}

// TerminalHints are the hints that also belong on the terminal: those of options that overrule a
// target, and those of results that were verified on a machine that they are about.
func (b Batch) TerminalHints() []string { return b.terminalHints(saturates()) }

func (b Batch) terminalHints(here bool) []string {
	for _, o := range b {
		if o.Err != nil || o.Result.Report.Coverage.ChangedBytes == 0 {
			continue
		}
		r := o.Result.Report
		verified := r.Verification != nil && r.Verification.Skipped == ""
		if r.Target != nil || here && verified {
			if len(r.Hints) > 0 {
				return r.Hints
			}
		}
	}
	return nil
}
