package memplan

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// extraBytes is, by operator, the memory of what the forward pass stores for the backward pass besides inputs and outputs.
var extraBytes = map[string]func(n *ir.Node, x, y ir.Spec) int64{
	"MaxPool":       func(_ *ir.Node, _, y ir.Spec) int64 { return y.Elems() }, // the index in the window, a byte
	"GlobalMaxPool": func(_ *ir.Node, _, y ir.Spec) int64 { return 4 * y.Elems() },

	// Mean and variance, in float32.
	"BatchNormalization":    func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 1, 2) },
	"InstanceNormalization": func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 2) },
	"GroupNormalization":    func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 1) * n.Int("num_groups", 1) },
	"LayerNormalization":    func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * rows(n, x) },
	"RMSNormalization":      func(n *ir.Node, x, _ ir.Spec) int64 { return 4 * rows(n, x) },

	// A number for each row of scores.
	"Attention":                        scores,
	"com.microsoft.Attention":          scores,
	"com.microsoft.MultiHeadAttention": scores,

	"LSTM": gates(5), // four gates and the cell of each step
	"GRU":  gates(4), // three, and the factor of the reset gate
}

// savedBy are the tensors that n saves; inputs and outputs if that is unknown.
func savedBy(n *ir.Node) operator.Saves {
	if s := operator.Of(n).Saves; s != 0 {
		return s
	}
	return operator.SavesInputs | operator.SavesOutput
}

// along is the product of x's axes from, inclusive, to to, exclusive.
func along(x ir.Spec, from, to int) int64 {
	n := int64(1)
	for _, d := range x.Shape[min(from, len(x.Shape)):min(to, len(x.Shape))] {
		n *= d
	}
	return n
}

// rows are the number of vectors that n normalizes, from its axis on.
func rows(n *ir.Node, x ir.Spec) int64 {
	axis := n.Int("axis", -1)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	return along(x, 0, int(max(0, axis)))
}

// scores are the rows of an attention's scores, a float32 each: one for each query of each head.
func scores(n *ir.Node, x, _ ir.Spec) int64 {
	if len(x.Shape) == 4 {
		return 4 * along(x, 0, 3)
	}
	return 4 * along(x, 0, 2) * max(n.Int("num_heads", 0), n.Int("q_num_heads", 1))
}

// gates are count floats for each element of the outputs of all steps.
func gates(count int64) func(n *ir.Node, x, y ir.Spec) int64 {
	return func(n *ir.Node, x, y ir.Spec) int64 {
		directions := int64(1)
		if d := n.Attr("direction"); d != nil && d.S == "bidirectional" {
			directions = 2
		}
		return count * 4 * along(x, 0, 2) * directions * n.Int("hidden_size", 0)
	}
}
