package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// weightInputs are the inputs of operators that hold weights.
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

// affine are operators whose constant operand is a weight if it is a vector along one axis, after a layer with weights: before that it
// normalizes the model's inputs.
var affine = []string{"Add", "Mul", "Sub", "Div"}

// views are operators between a weight and the operator that uses it.
var views = []string{"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

// Trainable returns the constants of m that are parameters: floating-point constants at the inputs of operators that hold weights. train
// selects among them by name; nil selects all.
func Trainable(m *ir.Model, train func(name string) bool) map[*ir.Value]bool {
	params := map[*ir.Value]bool{}
	for g := range m.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			continue // New reports the error
		}
		learned := map[*ir.Value]bool{}
		for _, n := range nodes {
			weights := weightIndices(n, learned)
			for _, i := range weights {
				if c := weightConst(n.Input(i)); c != nil && (train == nil || train(c.Name)) {
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

// weightIndices returns the inputs of n that hold weights.
func weightIndices(n *ir.Node, learned map[*ir.Value]bool) []int {
	var out []int
	for _, i := range weightInputs[n.Op.Type] {
		if weightConst(n.Input(i)) != nil {
			out = append(out, i)
		}
	}
	if len(n.Inputs()) != 2 || !slices.Contains(affine, n.Op.Type) {
		return out
	}
	for i := range 2 {
		if c := weightConst(n.Input(i)); c != nil && vector(c.Const.Shape) && learned[n.Input(1-i)] {
			out = append(out, i)
		}
	}
	return out
}

// weightConst returns the floating-point constant of which v is a view or transpose; nil if there is none.
func weightConst(v *ir.Value) *ir.Value {
	for v != nil && v.Const == nil {
		n := v.Producer()
		if n == nil || !slices.Contains(views, n.Op.Type) || !ir.DefaultDomain(n.Op.Domain) {
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
