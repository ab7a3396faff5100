package report

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// dequantized adds input i of DequantizeLinear: MatMulNBits has a scale and a zero point
// for each block of a column, and pads the last block. Integer kernels compute the scale of a bias.
func (f *folding) dequantized(n *ir.Node, i int, b buffer) {
	if i == 1 && biasOfIntegers(n) {
		return
	}
	f.add(b, f.dequantizedBytes(n, i, b.dtype), nil)
}

func (f *folding) dequantizedBytes(n *ir.Node, i int, dtype ir.DType) int64 {
	shape := f.matrix(n.Input(0))
	product, transposed := productOf(n)
	if product == nil || shape == nil {
		return f.bytes(dtype)
	}
	rows, cols := shape[0], shape[1]
	if transposed {
		rows, cols = cols, rows
	}
	block := n.Int("block_size", 0)
	// Scales of whole columns are repeated: the default of the session option session.qdq_matmulnbits_block_size.
	if block == 0 {
		block = 32
	}
	blocks := (rows + block - 1) / block
	switch i {
	case 0:
		return cols * blocks * (block * dtype.Bits() / 8)
	case 1:
		return cols * blocks * ir.Float.Bits() / 8
	case 2:
		return cols * ((blocks*dtype.Bits() + 7) / 8)
	}
	return f.bytes(dtype)
}

// productOf is the product of an activation that is not quantized and the output of n.
func productOf(n *ir.Node) (product *ir.Node, transposed bool) {
	v := n.Outputs[0]
	for len(v.Uses()) == 1 && v.Uses()[0].Node != nil {
		u := v.Uses()[0]
		switch {
		case u.Node.Op.Is("Transpose"):
			v, transposed = u.Node.Outputs[0], !transposed
		case operator.Of(u.Node).Product() && u.Index == 1:
			// Both factors are quantized: an integer kernel computes the product.
			if dequantizes(u.Node.Input(0)) || clip(u.Node) != nil {
				return nil, false
			}
			return u.Node, transposed != (u.Node.Int("transB", 0) == 1)
		default:
			return nil, false
		}
	}
	return nil, false
}

// clip is the Relu or Clip that is the only consumer of n, and has one consumer itself. The runtime does not fuse a
// product before it into MatMulNBits: it expects QuantizeLinear after it.
func clip(n *ir.Node) *ir.Node {
	next := n.Outputs[0].OnlyConsumer()
	if next == nil || !operator.Of(next).Clamps || next.Outputs[0].OnlyConsumer() == nil {
		return nil
	}
	return next
}

// biasOfIntegers reports whether n dequantizes the bias of a layer that the runtime computes in integers.
func biasOfIntegers(n *ir.Node) bool {
	layer := n.Outputs[0].OnlyConsumer()
	if layer == nil || operator.Of(layer).Input(n.Outputs[0].Uses()[0].Index).Role != operator.Bias {
		return false
	}
	if !dequantizes(layer.Input(0)) || !dequantizes(layer.Input(1)) {
		return false
	}
	last := layer
	if c := clip(layer); c != nil {
		last = c
	}
	next := last.Outputs[0].OnlyConsumer()
	quantized := next != nil && next.Op.Is("QuantizeLinear")
	return quantized || layer.Op.Is("Gemm") && last == layer
}

func dequantizes(v *ir.Value) bool {
	return v != nil && v.Producer() != nil && v.Producer().Op.Is("DequantizeLinear")
}
