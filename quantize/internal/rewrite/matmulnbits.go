package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// MatMulNBits replaces a product by that operator, whose values have the bits of st, or 4 if it is wide. Its sixth
// input, a bias, is unknown to ONNX Runtime 1.17.
func (r *Rewriter) MatMulNBits(s *weights.Consumer, st *Blockwise, wide bool, level int64) {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	importDomain(g, pass.MicrosoftDomain)
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	b, bits, quantized, zero := st.Layout, st.Layout.Bits, st.Quantized, st.ZeroPointValue
	if wide {
		bits = wideBits
		w := st.widened(r)
		quantized, zero = w.quantized, w.zero
	}
	attrs := []*ir.Attr{ir.IntAttr("K", b.Rows), ir.IntAttr("N", b.Cols), ir.IntAttr("bits", int64(bits)),
		ir.IntAttr("block_size", int64(b.Spec.Block))}
	if level > 0 {
		attrs = append(attrs, ir.IntAttr("accuracy_level", level))
	}
	in := []*ir.Value{x, quantized, st.ScaleValue}
	if zero != nil {
		in = append(in, zero)
	}
	y := g.Insert(at, "MatMulNBits", in, attrs...)
	y.Producer().Op.Domain = pass.MicrosoftDomain
	if alpha := at.Float("alpha", 1); at.Op.Is("Gemm") && alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.Scalar(s, alpha)})
	}
	r.Replace(s, r.AddBias(s, y, "Add"))
}

// wideBits is the width in which products read values of 2 bits.
const wideBits = 4

// A widened is 2-bit values and zero points in 4 bits, in nodes that ONNX Runtime folds.
type widened struct {
	quantized, zero *ir.Value           // zero is nil without zero points
	bytes           map[*ir.Value]int64 // folded, by constant
}

// widened looks up each byte of st in a table of two.
func (st *Blockwise) widened(r *Rewriter) *widened {
	if st.wide != nil {
		return st.wide
	}
	g, at, b := st.Graph, st.Graph.First(), st.Layout
	pairs := func(v *ir.Value, offset int32, shape ...int64) *ir.Value {
		return r.reshapeTo(g, at, g.Insert(at, "Gather",
			[]*ir.Value{st.table(r, widePairs(byte(offset))), r.Cast(g, at, v, ir.Int32)}), shape...)
	}
	offset := int32(0) // without zero points that of 4 bits is implied
	if st.ZeroPointValue == nil {
		offset = 1<<(wideBits-1) - b.ImpliedZeroPoint()
	}
	st.wide = &widened{
		quantized: pairs(st.Quantized, offset, b.Cols, b.NumBlocks(), int64(b.Spec.Block)*wideBits/8),
		bytes:     map[*ir.Value]int64{st.Quantized: 2 * st.Quantized.Const.Bytes()},
	}
	z := st.ZeroPointValue
	// Zero points have rows of whole bytes of their own: padding in 2 bits may be more than 4 bits need, which is cut
	// below.
	if z == nil {
		return st.wide
	}
	stored, need := 2*z.Const.Shape[1], (b.NumBlocks()*wideBits+7)/8
	x := pairs(z, 0, b.Cols, stored)
	if stored != need {
		first := make([]int64, need)
		for i := range first {
			first[i] = int64(i)
		}
		x = g.Insert(at, "Gather", []*ir.Value{x, r.step.Const(g, ir.Int64, []int64{need}, ir.Ints(first...))},
			ir.IntAttr("axis", 1))
	}
	st.wide.zero, st.wide.bytes[z] = x, b.Cols*need
	return st.wide
}

// widePairs is a table of the four 2-bit values of each byte, plus offset, in two bytes.
func widePairs(offset byte) []byte {
	var table []byte
	for b := range 256 {
		for half := range 2 {
			low := byte(b >> (4 * half))
			table = append(table, low&3+offset|(low>>2&3+offset)<<wideBits)
		}
	}
	return table
}

// importDomain adds the domain to the opset imports of g's model or function.
func importDomain(g *ir.Graph, domain string) {
	if g.Opset(domain) > 0 {
		return
	}
	// Functions have imports of their own.
	list := &g.Model().Opsets
	if f := g.Function(); f != nil {
		list = &f.Opsets
	}
	*list = append(*list, ir.Opset{Domain: domain, Version: 1})
}
