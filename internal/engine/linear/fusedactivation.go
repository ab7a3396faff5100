package linear

import (
	"github.com/mcompress/mcompress/internal/engine/activation"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

const microsoft = "com.microsoft"

// sameRow repeats row for several operators.
func sameRow(row op.Op, ids []ir.OpID) []op.Op {
	rows := make([]op.Op, len(ids))
	for i, id := range ids {
		row.Domain, row.Type = id.Domain, id.Type
		rows[i] = row
	}
	return rows
}

// activationOf is the fused activation of a node, nil for none. Its parameters are a list in operators of mcompress,
// and activation_alpha and activation_beta in those of com.microsoft.
func activationOf(n *op.Node) (func(row []float32), error) {
	name, params := n.Text("activation", ""), n.Floats("activation_params")
	if params == nil {
		alpha, beta := numbersOf(name)
		params = []float32{n.Float("activation_alpha", alpha), n.Float("activation_beta", beta)}
	}
	return activation.Of(name, params)
}

// numbersOf are the defaults of the operator's alpha and beta.
func numbersOf(name string) (alpha, beta float32) {
	switch name {
	case "LeakyRelu":
		return 0.01, 0
	case "HardSigmoid":
		return 0.2, 0.5
	}
	return 0, 0
}
