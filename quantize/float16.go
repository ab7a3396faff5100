package quantize

import (
	"context"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
)

// Float16 stores float32 weights in half precision. A Cast before their consumers keeps the arithmetic in float32; with
// Compute the graph computes in half precision, too.
//
// Storage alone is the default: activations cannot overflow, it loads wherever Cast does, and is as fast as the float32
// model; runtimes without kernels for half precision insert a Cast around every node of a converted graph.
type Float16 struct {
	pass.Selection
	_ pass.SharedOptions[halfCompute]

	// Compute is the type of the arithmetic: float32 or float16.
	Compute string `flag:"compute" default:"float32" enum:"float32,float16" usage:"'type' of the arithmetic: float32, or float16 for activations in half precision, too"`
	// NoKeepIO makes inputs and outputs of the model 16-bit floats, too.
	NoKeepIO bool
	// KeepFloat32 are globs over names of nodes that compute in float32 (op:Softmax for operators).
	KeepFloat32 pass.Globs
	// Clamp replaces weights beyond the type's range by its largest number. Without it such weights stay float32.
	Clamp       bool
	Calibration `defaults:"calibrate=32"`
}

var float16Method = &pass.Method{
	Name:    "float16",
	Command: "quantize",
	Doc:     "half-precision storage of float32 weights, float32 arithmetic by default; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &Float16{} },
}

// Method describes the method.
func (Float16) Method() *pass.Method { return float16Method }

// Run implements pass.Options.
func (o Float16) Run(ctx context.Context, s *pass.Step) error {
	w := pass.SharedOf[halfCompute](o).converter(&float.Binary16, o.Compute)
	d := calibrate.NewData(o.Calibration, true)
	w.Data = &d
	return w.Run(ctx, s)
}
