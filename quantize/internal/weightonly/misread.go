package weightonly

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// misread reports whether ONNX Runtime 1.31 would make something else of codes in blocks behind DequantizeLinear at s: an integer
// product where the activations are codes too, whatever the weights are; or of 2 bits a MatMulNBits of wrong codes, unless each row
// of the matrix fills its bytes.
func (w *Quantizer) misread(s *weights.Consumer) bool {
	return s.Side != weights.Lookup && (dequantized(s.Activation()) || w.Blocks.Bits == 2 && s.Shape[1]%4 != 0)
}

// coded reports whether v was codes, as far as ONNX Runtime sees: it takes DequantizeLinear through nodes that move values.
func dequantized(v *ir.Value) bool {
	for n := v.Producer(); n != nil; n = n.Input(0).Producer() {
		switch {
		case n.Op.Is("DequantizeLinear"):
			return true
		case !viewOps[n.Op.Type] || !ir.DefaultDomain(n.Op.Domain) || n.Input(0) == nil:
			return false
		}
	}
	return false
}

var viewOps = map[string]bool{"Reshape": true, "Flatten": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Slice": true, "MaxPool": true, "Identity": true}
