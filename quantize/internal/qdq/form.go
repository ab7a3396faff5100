package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// mergeBiases makes Gemm of MatMul and Add of a bias. ONNX Runtime does so itself, before it looks for integer kernels:
// Gemm has one for a quantized bias only, and versions before 1.23 compute it in float after dequantizing the weight in
// each run.
func (s *Quantizer) mergeBiases(step *pass.Step) {
	layers := s.layersOf(step)
	for _, n := range slices.Collect(step.Model.Graph.Nodes()) {
		if l := layers[n]; l != nil && n.Op.Is("MatMul") {
			mergeBias(n, l.consumer.Shape[1])
		}
	}
}

func mergeBias(n *ir.Node, channels int64) {
	y := n.Outputs[0]
	if rank, ok := opset.Rank(n.Input(0)); !ok || rank != 2 || len(y.Uses()) != 1 {
		return
	}
	add := y.Uses()[0].Node
	if add == nil || add.Graph() != n.Graph() || !add.Op.Is("Add") {
		return
	}
	bias := add.Input(1 - y.Uses()[0].Index)
	if o := biasOf(bias, channels); o == nil || len(o.Shape) > 2 {
		return
	}
	n.Op.Type = "Gemm"
	n.SetInput(2, bias)
	add.ReplaceBy(y)
}

// separatesBias reports whether n, a Gemm, is to become MatMul and Sum: where a runtime of the target does not run Gemm
// with a quantized bias, and where ONNX Runtime would compute Gemm and the activation after it in float, and dequantize
// the weight in each run. Versions from 1.22 on do so if the output is not quantized.
func (e *emitter) separatesBias(n *ir.Node) bool {
	uses := n.Outputs[0].Uses()
	fused := len(e.quantizedOutputs(n)) == 0 && len(uses) == 1 && uses[0].Node != nil &&
		operator.Of(uses[0].Node).Nonlinearity
	return n.Op.Is("Gemm") && n.Input(2) != nil && (fused || !e.step.Env.Target.Can(pass.QuantizedBias))
}

// separateBias makes MatMul and Sum of a Gemm. Neither is computed together with an activation.
func (e *emitter) separateBias(n *ir.Node) {
	y := e.g.Insert(n, "MatMul", n.Inputs()[:2])
	n.Op.Type, n.Attrs = "Sum", nil
	bias := n.Input(2)
	n.TrimInputs(2)
	n.SetInput(0, y)
	n.SetInput(1, bias)
}
