package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A rule is the effect of an operator on channels: it joins the channels of its inputs that are pruned together, sets
// those of its outputs, and keeps channels whose use is not supported.
type rule func(*propagation, *ir.Node)

// rules are the operators that channels are followed through, in addition to the families of ruleOf. Not supported:
// LRN, GroupNormalization and CumSum mix channels; quantized operators may have scales and zero points per channel, and
// pruning precedes quantization; If, Loop and Scan pass values to subgraphs, whose channels are followed separately.
var rules = map[string]rule{
	"Conv":                         conv,
	"ConvTranspose":                convTranspose,
	"Gemm":                         gemm,
	"MatMul":                       matmul,
	"LSTM":                         recurrent,
	"GRU":                          recurrent,
	"RNN":                          recurrent,
	"BatchNormalization":           batchNormalization,
	"InstanceNormalization":        instanceNormalization,
	"LayerNormalization":           normalizationRule(-1),
	"RMSNormalization":             normalizationRule(-1),
	"SimplifiedLayerNormalization": normalizationRule(-1),
	"Softmax":                      softmax,
	"LogSoftmax":                   softmax,
	"Hardmax":                      softmax,
	"Concat":                       concat,
	"Split":                        split,
	"Slice":                        slice,
	"Gather":                       gather,
	"Pad":                          pad,
	"Resize":                       resize,
	"Upsample":                     resize,
	"Transpose":                    transpose,
	"Squeeze":                      squeeze,
	"Unsqueeze":                    unsqueeze,
	"Flatten":                      flatten,
	"Reshape":                      reshape,
	"Expand":                       expand,
	"Shape":                        shape,
	"Attention":                    attend,
	"RotaryEmbedding":              rotate,

	"com.microsoft.Attention":           attendPacked,
	"com.microsoft.MultiHeadAttention":  attendHeads,
	"com.microsoft.GroupQueryAttention": attendGroups,
	"com.microsoft.RotaryEmbedding":     rotate,
}

// outerRules are those that also support channels that are merged with axes before them.
var outerRules = map[string]rule{
	"RMSNormalization":             normalizationRule(-1),
	"SimplifiedLayerNormalization": normalizationRule(-1),
	"Transpose":                    transpose,
	"Reshape":                      reshape,
	"Shape":                        shape,
}

// ruleOf is the rule of n's operator, nil where there is none.
func ruleOf(n *ir.Node) rule {
	f := operator.Of(n)
	switch {
	case f.QuantizedOutput || len(f.Quantized()) > 0:
		return nil
	case f.Elementwise != operator.NotElementwise:
		return elementwise
	case f.Reduction:
		return reduce
	case f.PerChannel && rules[operator.Name(n.Op)] == nil:
		return pool
	}
	return rules[operator.Name(n.Op)]
}
