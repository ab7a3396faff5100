package engine

import "github.com/mcompress/mcompress/ir"

// fuseSwish fuses x·Sigmoid(x) into Swish, which ONNX has since opset 24. i is the Sigmoid.
func fuseSwish(f *fusion, i int) bool {
	sigmoid := f.p.steps[i]
	if !sigmoid.is("Sigmoid") {
		return false
	}
	mul, iMul := f.onlyConsumer(sigmoid.out[0])
	if !mul.is("Mul") {
		return false
	}
	if x, _ := mul.otherInput(sigmoid.out[0]); x != sigmoid.in[0] {
		return false
	}
	s := fused(ir.OpID{Type: "Swish"}, 24, mul, sigmoid.in, mul.out)
	if s == nil {
		return false
	}
	f.replace(iMul, s, i, iMul)
	return true
}
