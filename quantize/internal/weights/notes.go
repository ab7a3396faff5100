package weights

import (
	"github.com/mcompress/mcompress/ir"
)

func JoinNotes(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// RemoveFromInputs removes v from its graph's inputs, as callers cannot replace quantized weights, and returns a note about it.
func RemoveFromInputs(v *ir.Value) string {
	if !v.IsInput() {
		return ""
	}
	v.Graph().RemoveInput(v)
	return "it was a graph input too; callers cannot replace it any more"
}
