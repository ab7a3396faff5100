package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// weightInputs are the inputs of operators that hold what a model has learned.
var weightInputs = map[string][]int{
	"Attention":                    {1, 2}, // of com.microsoft
	"BatchNormalization":           {1, 2},
	"BiasGelu":                     {1},
	"Conv":                         {1, 2},
	"ConvTranspose":                {1, 2},
	"EmbedLayerNormalization":      {2, 3, 4, 5, 6},
	"FastGelu":                     {1},
	"FusedMatMul":                  {0, 1},
	"Gather":                       {0},
	"Gemm":                         {0, 1, 2},
	"GroupNormalization":           {1, 2},
	"InstanceNormalization":        {1, 2},
	"LayerNormalization":           {1, 2},
	"MatMul":                       {0, 1},
	"PRelu":                        {1},
	"RMSNormalization":             {1},
	"SimplifiedLayerNormalization": {1},
	"SkipLayerNormalization":       {2, 3, 4},

	"SkipSimplifiedLayerNormalization": {2, 3},
}

// affine are operators whose constant operand is learned where it is a vector along one axis, behind
// something learned: before that it is how inputs are normalised.
var affine = []string{"Add", "Mul", "Sub", "Div"}

// through are operators that may stand between a weight and the operator that it is for.
var through = []string{"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

// Trainable are the constants of m that are parameters: those of a floating-point type at the inputs of operators that
// hold weights. train chooses among them by name; nil takes all.
func Trainable(m *ir.Model, train func(name string) bool) map[*ir.Value]bool {
	params := map[*ir.Value]bool{}
	for g := range m.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			continue // whoever copies the graph says so
		}
		learned := map[*ir.Value]bool{}
		for _, n := range nodes {
			weights := roles(n, learned)
			for _, i := range weights {
				if c := behind(n.Input(i)); c != nil && (train == nil || train(c.Name)) {
					params[c] = true
				}
			}
			if len(weights) > 0 || slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return learned[v] }) {
				for _, v := range n.Outputs {
					learned[v] = true
				}
			}
		}
	}
	return params
}

// roles are the inputs of n that hold weights.
func roles(n *ir.Node, learned map[*ir.Value]bool) []int {
	var out []int
	for _, i := range weightInputs[n.Op.Type] {
		if behind(n.Input(i)) != nil {
			out = append(out, i)
		}
	}
	if len(n.Inputs()) != 2 || !slices.Contains(affine, n.Op.Type) {
		return out
	}
	for i := range 2 {
		if c := behind(n.Input(i)); c != nil && vector(c.Const.Shape) && learned[n.Input(1-i)] {
			out = append(out, i)
		}
	}
	return out
}

// behind is the floating-point constant that v is, but for its form; nil if there is none.
func behind(v *ir.Value) *ir.Value {
	for v != nil && v.Const == nil {
		n := v.Producer()
		if n == nil || !slices.Contains(through, n.Op.Type) || !ir.DefaultDomain(n.Op.Domain) {
			return nil
		}
		v = n.Input(0)
	}
	if v == nil || !(v.Const.DType == ir.Float || v.Const.DType == ir.Double) {
		return nil
	}
	return v
}

// vector reports whether a shape has exactly one axis longer than 1.
func vector(shape []int64) bool {
	long := 0
	for _, n := range shape {
		if n > 1 {
			long++
		}
	}
	return long == 1
}
