package partition

import "github.com/mcompress/mcompress/ir"

// flops estimates the operations of n in a run: two per multiply-add of products, one per output element of
// other operators.
func (t *types) flops(n *ir.Node) int64 {
	made := int64(0)
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		if s, known := t.spec(v); known {
			made += s.Elems()
		}
	}
	depth, known := depths()[n.Op.Type]
	if !known {
		return made
	}
	return 2 * made * depth(t, n)
}

// depths are the number of multiply-adds per output element of an operator.
func depths() map[string]func(*types, *ir.Node) int64 {
	return map[string]func(*types, *ir.Node) int64{
		"MatMul": lastAxis, "MatMulInteger": lastAxis, "QLinearMatMul": lastAxis, "MatMulNBits": lastAxis,
		"Gemm": func(t *types, n *ir.Node) int64 {
			if n.Int("transA", 0) != 0 {
				return t.axis(n.Input(0), 0)
			}
			return lastAxis(t, n)
		},
		"Conv": window(1), "ConvInteger": window(1), "QLinearConv": window(3),
		// An element of the input is multiplied into a window of outputs: products by input.
		"ConvTranspose": func(t *types, n *ir.Node) int64 {
			in, out := t.elems(n.Input(0)), t.elems(n.Outputs[0])
			return in * perFilter(t, n.Input(1)) / max(1, out)
		},
		// W and R of the gates of a direction for each step's hidden state.
		"LSTM": gates, "GRU": gates, "RNN": gates,
	}
}

func lastAxis(t *types, n *ir.Node) int64 { return t.axis(n.Input(0), -1) }

func window(weights int) func(*types, *ir.Node) int64 {
	return func(t *types, n *ir.Node) int64 { return perFilter(t, n.Input(weights)) }
}

// perFilter is the number of elements per index of the first axis of a kernel.
func perFilter(t *types, w *ir.Value) int64 { return t.elems(w) / t.axis(w, 0) }

func gates(t *types, n *ir.Node) int64 {
	hidden := t.axis(n.Input(2), -1)
	return (t.elems(n.Input(1)) + t.elems(n.Input(2))) / (hidden * t.axis(n.Input(2), 0))
}

func (t *types) elems(v *ir.Value) int64 {
	if v == nil {
		return 0
	}
	s, known := t.spec(v)
	if !known {
		return 0
	}
	return s.Elems()
}

// axis is the size of an axis, counted from the end if negative; 1 if unknown.
func (t *types) axis(v *ir.Value, i int) int64 {
	if v == nil {
		return 1
	}
	s, known := t.spec(v)
	if i < 0 {
		i += len(s.Shape)
	}
	if !known || i < 0 || i >= len(s.Shape) {
		return 1
	}
	return max(1, s.Shape[i])
}
