package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
)

// BFloat16 stores float32 weights in bfloat16: float32's range, and eight bits of precision. ONNX Runtime has no CPU
// kernel for products of bfloat16, so that only the embedded engine runs a graph that computes in it.
type BFloat16 struct {
	pass.Selection
	_ pass.SharedOptions[halfCompute]

	// Compute is the type of the arithmetic: float32 or bfloat16.
	Compute string `flag:"compute" default:"float32" enum:"float32,bfloat16" usage:"'type' of the arithmetic: float32, or bfloat16 for activations in bfloat16, too"`
	// NoKeepIO makes inputs and outputs of the model 16-bit floats, too.
	NoKeepIO bool
	// KeepFloat32 are globs over names of nodes that compute in float32 (op:Softmax for operators).
	KeepFloat32 pass.Globs
	// Clamp replaces weights beyond the type's range by its largest number. Without it such weights stay float32.
	Clamp bool
}

var bfloat16Method = &pass.Method{
	Name:    "bfloat16",
	Command: "quantize",
	Doc:     "bfloat16 storage of float32 weights, float32 arithmetic by default; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &BFloat16{} },
}

// Method describes the method.
func (BFloat16) Method() *pass.Method { return bfloat16Method }

// Requires returns the capability of runtimes without which there is no form.
func (o BFloat16) Requires() []pass.Requirement {
	needs := []pass.Requirement{{Capability: pass.BFloats16, Nearest: "float16"}}
	if o.Compute == "bfloat16" {
		needs = append(needs, pass.Requirement{Capability: pass.BFloat16Math, Option: "--compute bfloat16",
			Nearest: "--compute float32"})
	}
	return needs
}

// Run implements pass.Options.
func (o BFloat16) Run(ctx context.Context, s *pass.Step) error {
	return pass.SharedOf[halfCompute](o).converter(&float.BFloat16Type, o.Compute).Run(ctx, s)
}
