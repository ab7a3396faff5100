package pass

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// broken are the rules of ONNX that the source of a run breaks. Runtimes may accept that, and a step is not to blame for it.
type broken map[string]bool

func rulesOf(m *ir.Model) broken {
	b := broken{}
	for _, v := range opset.Check(m) {
		b[v.Rule] = true
	}
	return b
}

// newlyBroken is a rule that m breaks and the source does not: a runtime that loads the source does not load m.
func (b broken) newlyBroken(m *ir.Model) (opset.Violation, bool) {
	for _, v := range opset.Check(m) {
		if !b[v.Rule] {
			return v, true
		}
	}
	return opset.Violation{}, false
}

// fault is the error of a result that breaks v. What a step makes of nodes that are invalid themselves is no fault of the program: it may have copied
// their types, or raised them to an opset in which they break another rule.
func (b broken) fault(v opset.Violation) error {
	if len(b) == 0 {
		return ir.Bugf("the result is not a valid model: %s", v)
	}
	return fmt.Errorf("the source is not a valid model (%s), and the result would not be either (%s)", slices.Min(slices.Collect(maps.Keys(b))), v)
}
