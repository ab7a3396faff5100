package pass

import (
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
