package prune

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// biasesOf are the constants that operators with weights add to their outputs: their own biases, and the second operand
// of Add after a product, as exporters write torch.nn.Linear.
func biasesOf(m *ir.Model) (ws []*weight) {
	found := map[*ir.Value]bool{}
	for n := range m.Nodes() {
		for i, v := range n.Inputs() {
			o := pass.Trace(v)
			if o == nil || !o.Trouble.None() || !pass.IsWeight(o.Base.Const) || !isBias(n, i, o.Shape) || found[o.Base] {
				continue
			}
			found[o.Base] = true
			ws = append(ws, &weight{v: o.Base, before: o.Base.Const, consumers: pass.Consumers(o.Base)})
		}
	}
	return ws
}

// isBias reports whether input i of n, a constant of that shape, is a bias.
func isBias(n *ir.Node, i int, shape []int64) bool {
	if !ir.DefaultDomain(n.Op.Domain) {
		return false
	}
	if n.Op.Is("Add") {
		product := n.Input(1 - i).Producer()
		return product != nil && operator.Of(product).Product() && hasWeight(product) && len(shape) == 1
	}
	f := operator.Of(n)
	return len(f.Weights()) > 0 && f.Input(i).Role == operator.Bias
}

// hasWeight reports whether an operand of a product is constant.
func hasWeight(n *ir.Node) bool {
	return pass.Trace(n.Input(0)) != nil || pass.Trace(n.Input(1)) != nil
}
