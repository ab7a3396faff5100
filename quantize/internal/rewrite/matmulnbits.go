package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// MatMulNBits replaces a product by that operator. Its sixth input, a bias, is unknown to ONNX Runtime 1.17.
func (r *Rewriter) MatMulNBits(s *weights.Consumer, st *Blockwise, level int64) {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	importDomain(g, pass.MicrosoftDomain)
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	b := st.Layout
	attrs := []*ir.Attr{ir.IntAttr("K", b.Rows), ir.IntAttr("N", b.Cols), ir.IntAttr("bits", int64(b.Bits)), ir.IntAttr("block_size", int64(b.Spec.Block))}
	if level > 0 {
		attrs = append(attrs, ir.IntAttr("accuracy_level", level))
	}
	in := []*ir.Value{x, st.Quantized, st.ScaleValue}
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	}
	y := g.Insert(at, "MatMulNBits", in, attrs...)
	y.Producer().Op.Domain = pass.MicrosoftDomain
	if alpha := at.Float("alpha", 1); at.Op.Is("Gemm") && alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.Scalar(s, alpha)})
	}
	r.Replace(s, r.AddBias(s, y, "Add"))
}

// importDomain adds the domain to the opset imports of g's model or function.
func importDomain(g *ir.Graph, domain string) {
	if g.Opset(domain) > 0 {
		return
	}
	list := &g.Model().Opsets
	if f := g.Function(); f != nil {
		list = &f.Opsets
	}
	*list = append(*list, ir.Opset{Domain: domain, Version: 1})
}
