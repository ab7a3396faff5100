package weightonly

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// fusesIncorrectly reports whether ONNX Runtime 1.31 fuses a blockwise DequantizeLinear at s incorrectly: into an
// integer product if the activation is dequantized, too, whatever the weight type; or, with 2 bits, into a MatMulNBits
// with wrong values, unless each row of the matrix fills whole bytes.
func (w *Quantizer) fusesIncorrectly(s *weights.Consumer) bool {
	return s.Side != weights.Lookup && (dequantized(s.Activation()) || w.Blocks.Bits == 2 && s.Shape[1]%4 != 0)
}

// dequantized reports whether v comes from DequantizeLinear through views, as ONNX Runtime sees it.
func dequantized(v *ir.Value) bool {
	for n := v.Producer(); n != nil; n = n.Input(0).Producer() {
		switch {
		case n.Op.Is("DequantizeLinear"):
			return true
		case !operator.Of(n).PassesDequantize || n.Input(0) == nil:
			return false
		}
	}
	return false
}
