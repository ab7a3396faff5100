package dynamic

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// skipOthers adds ledger rows of weights without products, where there is a more specific reason than an unsupported
// operator.
func skipOthers(s *pass.Step, taken []*weights.Weight) {
	hasProduct := map[*ir.Value]bool{}
	for _, w := range taken {
		hasProduct[w.Base] = true
	}
	for _, v := range pass.Weights(s.Model) {
		consumers := pass.Consumers(v)
		// Those have the reason of their product, or of the selection.
		if hasProduct[v] || s.Select.Excludes(v, consumers) {
			continue
		}
		if reason := otherReason(v); !reason.None() {
			s.Ledger.Skip(v, consumers, reason)
		}
	}
}

// otherReason is that reason by v's first consumer.
func otherReason(v *ir.Value) pass.Reason {
	leaves := pass.LeafUses(v)
	if len(leaves) == 0 || leaves[0].Node == nil {
		return pass.Reason{}
	}
	n := leaves[0].Node
	product := weights.IsProduct(n)
	switch {
	case product && leaves[0].Index > 1:
		return pass.Reason{Code: pass.Bias}.At(n)
	case product:
		return pass.Reason{Code: pass.TwoConsts}.At(n)
	case n.Callee() != nil:
		return pass.Reason{Code: pass.Argument}.At(n)
	}
	return pass.Reason{}
}
