package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// RemoveFromInputs removes v from its graph's inputs, as callers cannot replace quantized weights, and returns a note
// about it.
func RemoveFromInputs(v *ir.Value) pass.Reason {
	if !v.IsInput() {
		return pass.Reason{}
	}
	v.Graph().RemoveInput(v)
	return pass.Reason{Code: pass.WasInput}
}
