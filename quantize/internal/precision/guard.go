package precision

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// float32Reasons are the reasons why operators stay float32. Many others have no float16 in their signature, or only for some inputs:
// Resize's scales, NonMaxSuppression, DynamicQuantizeLinear.
var float32Reasons = map[operator.Precision]string{
	operator.Powers:         "powers and sums leave float16's range",
	operator.Exponentials:   "exponentials leave float16's range",
	operator.RunningSums:    "running sums lose what is added",
	operator.RecurrentState: "its state accumulates rounding errors",
	operator.Angles:         "angles need more than eleven bits",
	operator.Coordinates:    "coordinates need more than eleven bits",
	operator.Spectra:        "spectra span more than float16's range",
}

const isCoded = "it is quantized already"

// guard is the reason why n, an operator of ONNX, stays float32, or "".
func guard(n *ir.Node) string {
	f := operator.Of(n)
	switch {
	case f.Precision.RequiresFloat32():
		return float32Reasons[f.Precision]
	case n.Op.Is("Mul") && n.Input(0) == n.Input(1):
		return float32Reasons[operator.Powers]
	case f.ElemAttr == "dtype":
		return "ONNX Runtime makes no float16 without a narrow input"
	case keepsTypes(n):
		return "its subgraph or sequence keeps its types"
	}
	return ""
}

// keepsTypes reports whether n has a subgraph or is an operator on sequences or optional values.
func keepsTypes(n *ir.Node) bool {
	for range n.Subgraphs() {
		return true
	}
	in, out, _ := signature(n)
	found := false
	each(n, in, out, func(_ *ir.Value, q opset.Param) { found = found || !q.Tensor() })
	return found
}

// smallFactor is the maximum number of elements of a constant whose product with exact integers, such as positions or sizes,
// stays float32: frequencies of rotary embeddings.
const smallFactor = 1024
