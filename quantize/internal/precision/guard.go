package precision

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// float32Reasons are the reasons of operators that are computed in float32. Many others have no float16 in their
// signature, or only for some inputs: Resize's scales, NonMaxSuppression, DynamicQuantizeLinear.
var float32Reasons = map[operator.Precision]pass.Reason{
	operator.Powers:         {Code: pass.FloatRange, Detail: "powers and sums"},
	operator.Exponentials:   {Code: pass.FloatRange, Detail: "exponentials"},
	operator.Spectra:        {Code: pass.FloatRange, Detail: "spectra"},
	operator.RunningSums:    {Code: pass.FloatPrecision, Detail: "running sums"},
	operator.RecurrentState: {Code: pass.FloatPrecision, Detail: "recurrent state"},
	operator.Angles:         {Code: pass.FloatPrecision, Detail: "angles"},
	operator.Coordinates:    {Code: pass.FloatPrecision, Detail: "coordinates"},
}

// guard is the reason why n, an operator of ONNX, is computed in float32. ONNX Runtime makes no float16 random numbers
// and identity matrices without a float16 input.
func guard(n *ir.Node) pass.Reason {
	f := operator.Of(n)
	switch {
	case f.Precision.RequiresFloat32():
		return float32Reasons[f.Precision]
	case n.Op.Is("Mul") && n.Input(0) == n.Input(1):
		return float32Reasons[operator.Powers]
	case f.ElemAttr == "dtype":
		return pass.Reason{Code: pass.FloatTypes, Detail: "no input"}
	case keepsTypes(n):
		return pass.Reason{Code: pass.FloatTypes, Detail: "subgraph or sequence"}
	}
	return pass.Reason{}
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

// smallFactor is the maximum number of elements of a constant whose product with exact integers, such as positions or
// sizes, stays float32: frequencies of rotary embeddings.
const smallFactor = 1024
