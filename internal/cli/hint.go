package cli

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

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
