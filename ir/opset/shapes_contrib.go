package opset

import "github.com/mcompress/mcompress/ir"

// contribShapeRule is the rule of an operator of com.microsoft, or of an attention.
func contribShapeRule(op string) shapeRule {
	switch op {
	case "SimplifiedLayerNormalization", "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu",
		"com.microsoft.QuickGelu", "com.microsoft.RotaryEmbedding", "com.microsoft.SimplifiedLayerNormalization",
		"RotaryEmbedding", "com.microsoft.DequantizeLinear", "com.microsoft.QuantizeLinear":
		return sameAs(0)
	case "com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization":
		return skipNormalization
	case "com.microsoft.EmbedLayerNormalization":
		return embedNormalization
	case "com.microsoft.FusedConv":
		return conv(1)
	case "com.microsoft.FusedGemm":
		return gemm
	case "com.microsoft.FusedMatMul":
		return fusedMatMul
	case "com.microsoft.MatMulNBits":
		return replacedLast("N")
	case "com.microsoft.GatherBlockQuantized":
		return gather
	case "Attention", "com.microsoft.GroupQueryAttention", "com.microsoft.MultiHeadAttention":
		return attentionShape
	case "com.microsoft.Attention":
		return selfAttentionShape
	}
	return nil
}

// skipNormalization has the input's shape for the normalized sum, 0, and the sum, 3.
func skipNormalization(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	if i != 0 && i != 3 {
		return nil, false
	}
	return f.shape(n.Input(0))
}

// embedNormalization is batch × tokens × elements of a row of the table.
func embedNormalization(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	rows, ok2 := f.shape(n.Input(2))
	if i != 0 || !ok || !ok2 || len(rows) != 2 {
		return nil, false
	}
	return append(append([]ir.Dim{}, s...), rows[1]), true
}

func fusedMatMul(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	if n.Int("transA", 0)+n.Int("transB", 0)+n.Int("transBatchA", 0)+n.Int("transBatchB", 0) == 0 {
		return matmul(0, 1)(f, n, i)
	}
	x, ok := f.shape(n.Input(0))
	y, ok2 := f.shape(n.Input(1))
	return unknown(max(len(x), len(y))), ok && ok2
}

// replacedLast is the input's shape with the attribute as the size of the last axis.
func replacedLast(attr string) shapeRule {
	return func(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
		s, ok := f.shape(n.Input(0))
		if !ok || len(s) == 0 {
			return nil, false
		}
		return append(append([]ir.Dim{}, s[:len(s)-1]...), ir.Dim{N: n.Int(attr, -1)}), true
	}
}

// attentionShape has the queries' shape, with heads of the values' size, and the present keys and values.
func attentionShape(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	a, ok := f.attention(n)
	switch {
	case !ok || i > 2:
		return nil, false
	case i > 0:
		size := a.size
		if i == 2 {
			size = a.valueSize
		}
		return []ir.Dim{a.batch, a.keyHeads, a.present(), size}, true
	case a.split:
		return []ir.Dim{a.batch, a.heads, a.queries, a.valueSize}, true
	}
	return []ir.Dim{a.batch, a.queries, times(a.heads, a.valueSize)}, true
}

// selfAttentionShape is com.microsoft's Attention: the weights make queries, keys and values, and the present holds
// keys and values.
func selfAttentionShape(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	x, ok := f.shape(n.Input(0))
	w, ok2 := f.shape(n.Input(1))
	if i != 0 || !ok || !ok2 || len(x) != 3 || len(w) != 2 {
		return nil, false
	}
	hidden := scaled(w[1], -3)
	if sizes, given := attrInts(n, "qkv_hidden_sizes"); given && len(sizes) == 3 {
		hidden = ir.Dim{N: sizes[2]}
	}
	return []ir.Dim{x[0], x[1], hidden}, true
}
