package opset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Broken are the rules of ONNX that the source of a run breaks. Runtimes may accept that, and what is made of it is not
// to blame for it.
type Broken map[string]bool

// BrokenBy are the rules that m breaks, none for nil.
func BrokenBy(m *ir.Model) Broken {
	b := Broken{}
	if m != nil {
		for _, v := range Check(m) {
			b[v.Rule] = true
		}
	}
	return b
}

// Check is an error if m breaks a rule that the source does not: a runtime that loads the source does not load m. It is
// an internal one only if the source breaks none: what is made of nodes that are invalid themselves may have their
// types, or break another rule in a newer opset.
func (b Broken) Check(m *ir.Model) error {
	for _, v := range Check(m) {
		switch {
		case b[v.Rule]:
		case len(b) == 0:
			return ir.Bugf("the result is not a valid model: %s", v)
		default:
			return fmt.Errorf("the source is not a valid model (%s), and the result would not be either (%s)",
				slices.Min(slices.Collect(maps.Keys(b))), v)
		}
	}
	return nil
}
