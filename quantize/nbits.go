package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// The forms of products with weights in blocks: DequantizeLinear in front of them, or an operator of ONNX Runtime's own, for which
// every opset does, and which takes real zero points.
const (
	standardForm = "dequantizelinear"
	bitsForm     = "matmulnbits"
	microsoft    = "com.microsoft"
)

// A productForm is the form of products.
type productForm struct {
	name  string // empty where it was not given
	level int64  // MatMulNBits' accuracy_level
}

func (f *productForm) bind(fs *flag.FlagSet) {
	fs.Var(word{&f.name, []string{standardForm, bitsForm}}, "form", "`form` of products: dequantizelinear (standard) or matmulnbits (an operator of ONNX Runtime's, at any opset)")
	fs.Int64Var(&f.level, "accuracy-level", 0, "`level` that matmulnbits may compute at: 0 (float32), or 4 (activations in 8 bits: faster, less exact)")
}

// check finds options that do not go together.
func (o *blockOptions) check() error {
	switch {
	case o == nil:
		return nil
	case o.form.level < 0 || o.form.level > 4:
		return pass.OptionErrorf("--accuracy-level %d: it takes 0 to 4", o.form.level)
	case o.form.name != bitsForm && o.form.level != 0:
		return pass.OptionErrorf("--accuracy-level is about --form matmulnbits")
	case o.form.name == bitsForm && o.whole:
		return pass.OptionErrorf("--form matmulnbits has blocks: leave out --per-channel")
	}
	return nil
}

// bitsFormed reports whether products become MatMulNBits.
func (o *blockOptions) bitsFormed() bool { return o != nil && o.form.name == bitsForm }

// bitBlocking cuts a matrix as MatMulNBits wants it: blocks of a power of two from 16, the last filled up.
func (o *blockOptions) bitBlocking(rows, cols int64, lying bool) *blocking {
	size := int64(o.size())
	if size == 0 {
		size = defaultBlock
	}
	for size > 16 && size/2 >= rows {
		size /= 2
	}
	b := o.blocking(rows, cols, size, true)
	b.dtype, b.padded, b.lying, b.turn = ir.Uint8, true, lying, !lying
	b.grid.Low, b.grid.High, b.grid.Block = 0, 1<<o.bits-1, int(size)
	// ONNX Runtime takes real zero points for 4 bits alone.
	b.real = o.algo == "hqq" && o.bits == 4 && !o.symmetric
	return b
}

// chooseBits picks MatMulNBits for a matrix on the right of float32 products that see it in one way; nil if it is another weight.
func (w *weightOnly) chooseBits(v *ir.Value, us []*weightUse) *plan {
	if !w.blocks.bitsFormed() {
		return nil
	}
	p := &plan{weight: &weight{base: v}, form: pass.NBits}
	for _, u := range us {
		if u.site == nil || u.site.side == gather || !u.site.linear(v, ir.Float, ir.Float16) || u.site.transposed != us[0].site.transposed || u.site.ofVector() {
			return nil
		}
		p.sites = append(p.sites, u.site)
	}
	if !oneScope(v, p.sites) {
		return nil
	}
	s := p.sites[0]
	b := w.blocks.bitBlocking(s.shape[0], s.shape[1], s.transposed)
	if b.real {
		p.note("real zero points: the weight is made dense in every run")
	}
	p.cd = w.blockCoding(v, s.view(), b)
	return p
}

// ofVector reports whether the other factor is, or may be, a vector.
func (s *site) ofVector() bool {
	rank, ok := opset.Rank(s.act())
	return !s.node.Op.Is("Gemm") && ok && rank < 2
}

// bits replaces a product by MatMulNBits.
func (r *rewriter) bits(s *site, st *stored, level int64) {
	g, at, x := s.node.Graph(), s.node, s.act()
	imports(g, microsoft)
	if s.flipped() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	b := st.b
	attrs := []*ir.Attr{ir.IntAttr("K", b.rows), ir.IntAttr("N", b.cols), ir.IntAttr("bits", int64(b.bits)), ir.IntAttr("block_size", int64(b.grid.Block))}
	if level > 0 {
		attrs = append(attrs, ir.IntAttr("accuracy_level", level))
	}
	in := []*ir.Value{x, st.codes, st.scale}
	if st.zero != nil {
		in = append(in, st.zero)
	}
	bias := s.columnBias(b.cols)
	if bias != nil {
		in = append(in, make([]*ir.Value, 5-len(in))...)
		in = append(in, bias)
	}
	y := g.Insert(at, "MatMulNBits", in, attrs...)
	y.Producer().Op.Domain = microsoft
	if alpha := at.Float("alpha", 1); at.Op.Is("Gemm") && alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.number(s, alpha)})
	}
	if bias == nil {
		y = r.bias(s, y, "Add")
	}
	r.replace(s, y)
}

// columnBias is Gemm's C if it is one number for each of n columns, added as it is.
func (s *site) columnBias(n int64) *ir.Value {
	c := s.node.Input(2)
	if !s.node.Op.Is("Gemm") || c == nil || c.Const == nil || len(c.Const.Shape) != 1 || c.Const.Shape[0] != n {
		return nil
	}
	if s.node.Float("alpha", 1) != 1 || s.node.Float("beta", 1) != 1 {
		return nil
	}
	return c
}

// imports makes the domain known where g stands.
func imports(g *ir.Graph, domain string) {
	if g.Opset(domain) > 0 {
		return
	}
	list := &g.Model().Opsets
	if f := g.Function(); f != nil {
		list = &f.Opsets
	}
	*list = append(*list, ir.Opset{Domain: domain, Version: 1})
}
