package quantize

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// The forms of products with weights in blocks: DequantizeLinear in front of them, or an operator of ONNX Runtime's own, for which
// every opset does, and which takes real zero points.
const (
	StandardForm = "dequantizelinear"
	NBitsForm    = "matmulnbits"
)

// A productForm is the form of products.
type Form struct {
	Name          string // empty where it was not given
	AccuracyLevel int64  // MatMulNBits' accuracy_level
}

// check finds options that do not go together.
func (o *BlockOptions) check() error {
	switch {
	case o == nil:
		return nil
	case o.Form.AccuracyLevel < 0 || o.Form.AccuracyLevel > 4:
		return pass.OptionErrorf("--accuracy-level %d: it takes 0 to 4", o.Form.AccuracyLevel)
	case o.Form.Name != NBitsForm && o.Form.AccuracyLevel != 0:
		return pass.OptionErrorf("--accuracy-level is about --form matmulnbits")
	case o.Form.Name == NBitsForm && o.PerChannel:
		return pass.OptionErrorf("--form matmulnbits has blocks: leave out --per-channel")
	}
	return nil
}

// bitsFormed reports whether products become MatMulNBits.
func (o *BlockOptions) usesNBits() bool { return o != nil && o.Form.Name == NBitsForm }

// bitBlocking cuts a matrix as MatMulNBits wants it: blocks of a power of two from 16, the last filled up.
func (o *BlockOptions) nbitsLayout(rows, cols int64, lying bool) *BlockLayout {
	size := int64(o.size())
	if size == 0 {
		size = defaultBlock
	}
	for size > 16 && size/2 >= rows {
		size /= 2
	}
	b := o.layout(rows, cols, size, true)
	b.DType, b.ForNBits, b.ColumnMajor, b.Transposed = ir.Uint8, true, lying, !lying
	b.Spec.Low, b.Spec.High, b.Spec.Block = 0, 1<<o.Bits-1, int(size)
	// ONNX Runtime takes real zero points for 4 bits alone.
	b.FloatZeroPoints = o.Algo == "hqq" && o.Bits == 4 && !o.Symmetric
	return b
}

// chooseBits picks MatMulNBits for a matrix on the right of float32 products that see it in one way; nil if it is another weight.
func (w *Quantizer) chooseBits(v *ir.Value, us []*Use) *plan {
	if !w.Blocks.usesNBits() {
		return nil
	}
	p := &plan{Weight: &Weight{Base: v}, form: pass.NBits}
	for _, u := range us {
		if u.Consumer == nil || u.Consumer.Side == Lookup || !u.Consumer.StaysQuantized(v, ir.Float, ir.Float16) || u.Consumer.Transposed != us[0].Consumer.Transposed || u.Consumer.VectorActivation() {
			return nil
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	if !SameScope(v, p.Consumers) {
		return nil
	}
	s := p.Consumers[0]
	b := w.Blocks.nbitsLayout(s.Shape[0], s.Shape[1], s.Transposed)
	if b.FloatZeroPoints {
		p.note("real zero points: the weight is made dense in every run")
	}
	p.encoding = w.blockCoding(v, s.BaseShape(), b)
	return p
}

// ofVector reports whether the other factor is, or may be, a vector.
func (s *Consumer) VectorActivation() bool {
	rank, ok := opset.Rank(s.Activation())
	return !s.Node.Op.Is("Gemm") && ok && rank < 2
}

// bits replaces a product by MatMulNBits.
func (r *Rewriter) MatMulNBits(s *Consumer, st *Stored, level int64) {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	importDomain(g, microsoftDomain)
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	b := st.Blocks
	attrs := []*ir.Attr{ir.IntAttr("K", b.Rows), ir.IntAttr("N", b.Cols), ir.IntAttr("bits", int64(b.Bits)), ir.IntAttr("block_size", int64(b.Spec.Block))}
	if level > 0 {
		attrs = append(attrs, ir.IntAttr("accuracy_level", level))
	}
	in := []*ir.Value{x, st.Quantized, st.ScaleValue}
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	}
	bias := s.ColumnBias(b.Cols)
	if bias != nil {
		in = append(in, make([]*ir.Value, 5-len(in))...)
		in = append(in, bias)
	}
	y := g.Insert(at, "MatMulNBits", in, attrs...)
	y.Producer().Op.Domain = microsoftDomain
	if alpha := at.Float("alpha", 1); at.Op.Is("Gemm") && alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.Scalar(s, alpha)})
	}
	if bias == nil {
		y = r.AddBias(s, y, "Add")
	}
	r.Replace(s, y)
}

// columnBias is Gemm's C if it is one number for each of n columns, added as it is.
func (s *Consumer) ColumnBias(n int64) *ir.Value {
	c := s.Node.Input(2)
	if !s.Node.Op.Is("Gemm") || c == nil || c.Const == nil || len(c.Const.Shape) != 1 || c.Const.Shape[0] != n {
		return nil
	}
	if s.Node.Float("alpha", 1) != 1 || s.Node.Float("beta", 1) != 1 {
		return nil
	}
	return c
}

// imports makes the domain known where g stands.
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

const microsoftDomain = "com.microsoft"
