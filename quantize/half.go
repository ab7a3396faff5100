package quantize

import (
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
)

// halfCompute is the group of options about arithmetic in a 16-bit float.
type halfCompute struct {
	// NoKeepIO makes inputs and outputs of the model 16-bit floats, too.
	NoKeepIO bool `flag:"keep-io,not" usage:"with --compute: inputs and outputs of the model stay float32"`
	// KeepFloat32 are globs over names of nodes that compute in float32 (op:Softmax for operators).
	KeepFloat32 pass.Globs `flag:"keep-float32" list:"yes" usage:"with --compute: nodes that stay float32, by 'globs' over their names (op:Softmax for operators)"`
	// Clamp replaces weights beyond the type's range by its largest number. Without it such weights stay float32.
	Clamp bool `flag:"clamp" usage:"clamp weights to the type's range; without it weights beyond the range stay float32"`
}

func (o halfCompute) converter(t *float.HalfType, compute string) *float.Converter {
	return &float.Converter{HalfType: t, Compute: compute == t.DType.String(), KeepIO: !o.NoKeepIO,
		KeepFloat32: o.KeepFloat32, Clamp: o.Clamp}
}
