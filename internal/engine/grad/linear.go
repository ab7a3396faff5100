package grad

import (
	"github.com/mcompress/mcompress/ir"
)

var linear = []rule{
	{Type: "MatMul", Backward: matMul},
	{Domain: microsoft, Type: "FusedMatMul", Backward: fusedMatMul},
	{Type: "Gemm", Backward: gemm},
	{Type: "Einsum", Backward: einsum},
}

// matMul treats vectors as matrices.
func matMul(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	a, b := t.Shape(n.Input(0)), t.Shape(n.Input(1))
	p := product{Tape: t, node: n, alpha: 1, a: matrices{n.Input(0), a, false}, b: matrices{n.Input(1), b, false},
		dy: dy[0]}
	y := t.Shape(n.Outputs[0])
	if len(a) == 1 {
		p.a.shape = []int64{1, a[0]}
		y = append(y[:max(len(b)-2, 0):max(len(b)-2, 0)], append([]int64{1}, y[max(len(b)-2, 0):]...)...)
	}
	if len(b) == 1 {
		p.b.shape = []int64{b[0], 1}
		y = append(y[:len(y):len(y)], 1)
	}
	if len(a) == 1 || len(b) == 1 {
		p.a.v, p.b.v, p.dy = t.Reshape(p.a.v, p.a.shape), t.Reshape(p.b.v, p.b.shape), t.Reshape(p.dy, y)
	}
	dx := p.gradients(y)
	for i, v := range n.Inputs() {
		if dx[i] != nil && len(t.Shape(v)) == 1 {
			dx[i] = t.Reshape(dx[i], t.Shape(v))
		}
	}
	return dx, nil
}

// fusedMatMul is com.microsoft's FusedMatMul, with a factor and transposed operands of at least two axes.
func fusedMatMul(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if n.Int("transBatchA", 0) != 0 || n.Int("transBatchB", 0) != 0 || len(t.Shape(n.Input(0))) < 2 ||
		len(t.Shape(n.Input(1))) < 2 {
		return nil, errUnknownForm
	}
	return product{
		Tape: t, node: n, alpha: n.Float("alpha", 1), dy: dy[0],
		a: matrices{n.Input(0), t.Shape(n.Input(0)), n.Int("transA", 0) != 0},
		b: matrices{n.Input(1), t.Shape(n.Input(1)), n.Int("transB", 0) != 0},
	}.gradients(t.Shape(n.Outputs[0])), nil
}

// matrices are an operand: a stack of matrices, possibly transposed.
type matrices struct {
	v     *ir.Value
	shape []int64
	trans bool
}

// A product is alpha·A·B with the gradient of its result. The gradient of A is dY·Bᵀ, that of B is Aᵀ·dY, each summed
// over broadcast axes.
type product struct {
	*Tape
	node  *ir.Node
	alpha float32
	a, b  matrices
	dy    *ir.Value
}

// gradients returns those of A and B as they are stored. y is the shape of the result.
func (p product) gradients(y []int64) []*ir.Value {
	dx, d := make([]*ir.Value, 2), matrices{p.dy, y, false}
	if p.Needs(p.node.Input(0)) {
		if p.a.trans {
			dx[0] = p.multiply(p.b.as(p.b.trans), d.as(true), p.a.shape)
		} else {
			dx[0] = p.multiply(d, p.b.as(!p.b.trans), p.a.shape)
		}
	}
	if p.Needs(p.node.Input(1)) {
		a := p.a
		if len(p.b.shape) == 2 && !a.trans {
			// All matrices of the stack share B: one product over all of their rows sums in it, where one for each matrix
			// would compute and store a stack of gradients to be summed.
			a, d = p.flat(a), p.flat(d)
		}
		if p.b.trans {
			dx[1] = p.multiply(d.as(true), a.as(a.trans), p.b.shape)
		} else {
			dx[1] = p.multiply(a.as(!a.trans), d, p.b.shape)
		}
	}
	return dx
}

func (m matrices) as(trans bool) matrices { return matrices{m.v, m.shape, trans} }

// flat merges a stack into one matrix with all its rows, so that the product sums over the stack.
func (p product) flat(m matrices) matrices {
	if len(m.shape) == 2 {
		return m
	}
	last := m.shape[len(m.shape)-1]
	rows := int64(1)
	for _, d := range m.shape[:len(m.shape)-1] {
		rows *= d
	}
	shape := []int64{rows, last}
	return matrices{p.Reshape(m.v, shape), shape, m.trans}
}

// multiply returns alpha·A·B, summed to a shape.
func (p product) multiply(a, b matrices, want []int64) *ir.Value {
	have := stackShape(a, b)
	attrs := []*ir.Attr{ir.IntAttr("transA", flag(a.trans)), ir.IntAttr("transB", flag(b.trans)),
		ir.FloatAttr("alpha", p.alpha)}
	out := p.add(ir.OpID{Domain: microsoft, Type: "FusedMatMul"}, 1, []*ir.Value{a.v, b.v}, attrs)[0]
	return p.SumTo(out, have, want)
}

// stackShape returns the shape of the product.
func stackShape(a, b matrices) []int64 {
	rank := max(len(a.shape), len(b.shape))
	out := make([]int64, rank)
	for i := range rank - 2 {
		out[i] = max(paddedDim(a.shape, rank, i), paddedDim(b.shape, rank, i))
		if paddedDim(a.shape, rank, i) == 0 || paddedDim(b.shape, rank, i) == 0 {
			out[i] = 0
		}
	}
	out[rank-2], out[rank-1] = a.shape[len(a.shape)-2], b.shape[len(b.shape)-1]
	if a.trans {
		out[rank-2] = a.shape[len(a.shape)-1]
	}
	if b.trans {
		out[rank-1] = b.shape[len(b.shape)-2]
	}
	return out
}

// paddedDim returns axis i of a shape that is padded to rank with leading axes of size 1.
func paddedDim(shape []int64, rank, i int) int64 {
	if i -= rank - len(shape); i < 0 {
		return 1
	}
	return shape[i]
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// gemm: Y = alpha·A·B + beta·C.
func gemm(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	dx := append(product{
		Tape: t, node: n, alpha: n.Float("alpha", 1), dy: dy[0],
		a: matrices{n.Input(0), t.Shape(n.Input(0)), n.Int("transA", 0) != 0},
		b: matrices{n.Input(1), t.Shape(n.Input(1)), n.Int("transB", 0) != 0},
	}.gradients(t.Shape(n.Outputs[0])), nil)
	if c := n.Input(2); t.Needs(c) {
		dx[2] = t.Scale(sumToOperand(t, n, 2, dy[0]), t.DType(c), float64(n.Float("beta", 1)))
	}
	return dx, nil
}
