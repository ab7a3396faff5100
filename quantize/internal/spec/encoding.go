package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An Encoding is a weight as it will be stored: quantized values, scales and, where the scheme has them, zero points.
type Encoding interface {
	// Recipe computes the stored tensors from the float weight: the outputs are in the order of the constants below.
	Recipe() *ir.Recipe
	// Restore is the float weight, dequantized from its parts.
	Restore(parts []*ir.Tensor) *ir.Tensor
	// Bound is what the stored weight must hold.
	Bound() *pass.Bound
	// Bytes is the size of the stored tensors.
	Bytes() int64
	// Check reads the weight and returns a *pass.Unfit if no scales represent its values.
	Check(ctx context.Context, in io.ReaderAt) error
	// Same reports whether e quantizes an equal weight to equal values.
	Same(e Encoding) bool
}

// The outputs of an encoding's recipe, in order.
const (
	OutQuantized = iota
	OutScales
	OutZeroPoints
)

// checkRecipe runs r without output.
func checkRecipe(ctx context.Context, r *ir.Recipe, in io.ReaderAt) error {
	out := make([]io.Writer, len(r.Out))
	for i := range out {
		out[i] = io.Discard
	}
	return r.Run(ctx, []io.ReaderAt{in}, out)
}
