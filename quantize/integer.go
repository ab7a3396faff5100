package quantize

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A rewriter puts integer products in the place of float ones. Activations are
// quantized once for all products that read them.
type rewriter struct {
	c      *pass.Context
	quant  map[key][]*ir.Value // DynamicQuantizeLinear's outputs by activation
	wide   map[key]*ir.Value   // 16-bit activations cast to float32
	shaped map[key]*ir.Value   // scales and zero points in their other shape
}

func newRewriter(c *pass.Context) *rewriter {
	return &rewriter{c: c, quant: map[key][]*ir.Value{}, wide: map[key]*ir.Value{}, shaped: map[key]*ir.Value{}}
}

// A key is a value as a graph reads it: what one graph computes others cannot see.
type key struct {
	g *ir.Graph
	v *ir.Value
}

// gatherRows replaces a lookup in a float table by one in codes and scales: a
// DequantizeLinear in front of it would expand the whole table in every run.
func (r *rewriter) gatherRows(s *site, st *stored) {
	if st.b != nil {
		r.gatherBlocks(s, st)
		return
	}
	g, at := s.node.Graph(), s.node
	rows := func(v *ir.Value) *ir.Value {
		if st.axis != 0 || v.Const != nil && len(v.Const.Shape) == 0 {
			return v // one for all rows, or one for each column
		}
		return g.Insert(at, "Gather", []*ir.Value{v, s.act()})
	}
	x := r.cast(g, at, g.Insert(at, "Gather", []*ir.Value{r.oriented(st, false), s.act()}), ir.Float)
	if z := r.zero(st); z != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, r.cast(g, at, rows(z), ir.Float)})
	}
	x = g.Insert(at, "Mul", []*ir.Value{x, rows(st.scale)})
	if s.elem != ir.Float {
		x = r.cast(g, at, x, s.elem)
	}
	r.replace(s, x)
}

// product replaces a float product by an integer one. Mul(y, Mul(xs, ws)) is the
// order that ONNX Runtime fuses.
func (r *rewriter) product(s *site, st *stored) {
	g, at := s.node.Graph(), s.node
	q := r.quantized(g, at, r.activation(s, st))
	codes, zero := r.oriented(st, s.transposed), r.flat(st, r.zero(st))
	in := []*ir.Value{q[0], codes, q[2], zero}
	if s.side == left {
		in = []*ir.Value{codes, q[0], zero, q[2]}
	}
	if in[3] == nil {
		in = in[:3]
	}
	y := r.cast(g, at, g.Insert(at, "MatMulInteger", in), ir.Float)
	y = g.Insert(at, "Mul", []*ir.Value{y, g.Insert(at, "Mul", []*ir.Value{q[1], r.outer(s, st)})})
	if s.mirrored && s.rank > 1 {
		y = r.swap(g, at, y, s.rank)
	}
	if s.elem != ir.Float {
		y = r.cast(g, at, y, s.elem)
	}
	r.replace(s, r.bias(s, y, "Add"))
}

func (r *rewriter) replace(s *site, y *ir.Value) {
	inputs := slices.Clone(s.node.Inputs())
	s.node.Become(y)
	for _, v := range inputs {
		if v != nil {
			v.Drop()
		}
	}
}

// activation is the float32 factor that is quantized at run time. Scales that lie
// along the sum multiply it, as they cannot be taken out of the product.
func (r *rewriter) activation(s *site, st *stored) *ir.Value {
	g, at, x := s.node.Graph(), s.node, s.act()
	if s.elem != ir.Float {
		x = r.widened(g, at, x)
	}
	if s.flipped() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	if s.mirrored && s.rank > 1 {
		x = r.swap(g, at, x, s.rank)
	}
	if s.alongSum(st) {
		x = g.Insert(at, "Mul", []*ir.Value{x, r.placed(st, st.scale, s.side == left)})
	}
	return x
}

// flipped reports whether Gemm transposes the activation.
func (s *site) flipped() bool {
	return s.node.Op.Is("Gemm") && s.node.Int([]string{"transA", "transB"}[1-s.use.Index], 0) != 0
}

// alongSum reports whether st's scales lie along the axis that s sums over.
func (s *site) alongSum(st *stored) bool { return st.axis >= 0 && s.channelAxis() != st.axis }

// quantized inserts DynamicQuantizeLinear in front of the first product that needs it.
func (r *rewriter) quantized(g *ir.Graph, at *ir.Node, x *ir.Value) []*ir.Value {
	k := key{g, x}
	if r.quant[k] == nil {
		r.quant[k] = g.InsertN(at, "DynamicQuantizeLinear", 3, []*ir.Value{x})
	}
	return r.quant[k]
}

// widened casts a 16-bit activation to float32, once for all products.
func (r *rewriter) widened(g *ir.Graph, at *ir.Node, x *ir.Value) *ir.Value {
	k := key{g, x}
	if r.wide[k] == nil {
		r.wide[k] = r.cast(g, at, x, ir.Float)
	}
	return r.wide[k]
}

func (r *rewriter) cast(g *ir.Graph, at *ir.Node, x *ir.Value, to ir.DType) *ir.Value {
	return g.Insert(at, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(to)))
}

// swap exchanges the last two axes of x.
func (r *rewriter) swap(g *ir.Graph, at *ir.Node, x *ir.Value, rank int) *ir.Value {
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	return g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", perm...))
}

// oriented is the codes as a reader sees them. Turning them is a node, once for all
// that need it; runtimes fold it.
func (r *rewriter) oriented(st *stored, transposed bool) *ir.Value {
	if transposed == st.transpose {
		return st.codes
	}
	if st.turned == nil {
		g := st.home
		st.turned = g.Insert(g.First(), "Transpose", []*ir.Value{st.codes}, ir.IntsAttr("perm", 1, 0))
	}
	return st.turned
}

// zero is the codes' zero point, nil where it is the code 0 that operators assume.
func (r *rewriter) zero(st *stored) *ir.Value {
	switch {
	case st.zero != nil:
		return st.zero
	case st.s.zero() != 0:
		return r.c.Const(st.home, st.s.dtype(), nil, []byte{byte(st.s.zero())})
	}
	return nil
}

// outer is the scale that multiplies the product: the weight's, where it lies along an
// axis that is kept, times Gemm's alpha.
func (r *rewriter) outer(s *site, st *stored) *ir.Value {
	g := s.node.Graph()
	alpha := s.node.Float("alpha", 1)
	if !s.node.Op.Is("Gemm") {
		alpha = 1
	}
	if s.alongSum(st) {
		// A scalar 1 would be taken out by ONNX Runtime, and nothing fused then.
		return r.c.Const(g, ir.Float, []int64{1}, ir.Floats(alpha))
	}
	w := r.placed(st, st.scale, s.side == left)
	if alpha == 1 {
		return w
	}
	return g.Insert(s.node, "Mul", []*ir.Value{w, r.c.Const(g, ir.Float, nil, ir.Floats(alpha))})
}

// flat is zero points as MatMulInteger takes them: a vector for a matrix.
func (r *rewriter) flat(st *stored, v *ir.Value) *ir.Value {
	if v == nil || v.Const != nil && len(v.Const.Shape) == 0 {
		return v
	}
	return r.placed(st, v, false)
}

// placed is a matrix's scales or zero points as a column or as a vector; those of
// batches and single ones fit as they are.
func (r *rewriter) placed(st *stored, v *ir.Value, column bool) *ir.Value {
	shape := []int64{st.g.scales()}
	if column {
		shape = append(shape, 1)
	}
	if st.axis < 0 || len(st.shape) > 2 || len(shape) == len(st.scales) {
		return v
	}
	k := key{st.home, v}
	if r.shaped[k] == nil {
		g := k.g
		to := r.c.Const(g, ir.Int64, []int64{int64(len(shape))}, ir.Ints(shape...))
		r.shaped[k] = g.Insert(g.First(), "Reshape", []*ir.Value{v, to})
	}
	return r.shaped[k]
}

// bias adds Gemm's C, times beta, by Add or Sum.
func (r *rewriter) bias(s *site, y *ir.Value, add string) *ir.Value {
	b, beta := s.node.Input(2), s.node.Float("beta", 1)
	if !s.node.Op.Is("Gemm") || b == nil || beta == 0 {
		return y
	}
	g, at := s.node.Graph(), s.node
	if beta != 1 {
		b = g.Insert(at, "Mul", []*ir.Value{b, r.number(s, beta)})
	}
	return g.Insert(at, add, []*ir.Value{y, b})
}

// number is a constant of the type that s has; runtimes fold the Cast.
func (r *rewriter) number(s *site, f float32) *ir.Value {
	g := s.node.Graph()
	v := r.c.Const(g, ir.Float, nil, ir.Floats(f))
	if s.elem != ir.Float {
		v = r.cast(g, s.node, v, s.elem)
	}
	return v
}
