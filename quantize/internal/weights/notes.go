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

// noInput takes v out of its graph's inputs, as codes cannot be replaced by callers, and
// says so.
func RemoveFromInputs(v *ir.Value) string {
	if !v.IsInput() {
		return ""
	}
	v.Graph().RemoveInput(v)
	return "it was a graph input too; callers cannot replace it any more"
}
