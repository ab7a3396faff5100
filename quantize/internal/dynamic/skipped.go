package dynamic

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// skipOthers adds ledger rows of weights without products, where there is a more specific reason than an unsupported operator.
func skipOthers(c *pass.Context, taken []*weights.Weight) {
	sited := map[*ir.Value]bool{}
	for _, w := range taken {
		sited[w.Base] = true
	}
	for _, v := range c.Weights() {
		consumers := pass.Readers(v)
		if sited[v] || c.Select.Excludes(v, consumers) != "" {
			continue
		}
		if why := otherReason(c, v); why != "" {
			c.Skip(v, consumers, why)
		}
	}
}

// otherReason is that reason by v's first consumer, or "".
func otherReason(c *pass.Context, v *ir.Value) string {
	leaves := pass.Leaves(v)
	if len(leaves) == 0 || leaves[0].Node == nil {
		return ""
	}
	n, label := leaves[0].Node, pass.Labels([]*ir.Node{leaves[0].Node})[0]
	product := n.Op.Is("MatMul") || n.Op.Is("Gemm")
	switch {
	case product && leaves[0].Index > 1:
		return fmt.Sprintf("it is the bias of %s, which stays float", label)
	case product:
		return fmt.Sprintf("%s multiplies two constants", label)
	case weights.CallsFunction(c.Model, n):
		return fmt.Sprintf("it is an argument of %s, a function of the model: inside it is no constant", label)
	}
	return ""
}
