package prune

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A factorization replaces a weight, as a matrix rows × cols, by two factors, rows × r and r × cols.
type factorization struct {
	w          *weight
	node       *ir.Node
	input      int
	kind       factorKind
	rows, cols int64
	transposed bool    // stored as cols × rows
	kernel     []int64 // of a convolution
	a, b       *ir.Value
}

// A factorKind is an operator whose weight can be two factors. The left factor is the second product where the weight
// is the left operand, as filters are.
type factorKind struct {
	rightFirst bool
	rewrite    func(f *factorization, first, second *ir.Value)
}

// factorizationOf is nil with a reason where w cannot be factored.
func factorizationOf(w *weight) (*factorization, pass.Reason) {
	uses := pass.LeafUses(w.v)
	if len(uses) != 1 {
		return nil, pass.Reason{Code: pass.SeveralConsumers, Detail: fmt.Sprint(len(uses))}
	}
	f := &factorization{w: w, node: uses[0].Node, input: uses[0].Index}
	o := pass.Trace(f.node.Input(f.input))
	switch {
	case !o.Trouble.None():
		return nil, o.Trouble
	case !pass.FromCaller(f.node).None():
		return nil, pass.FromCaller(f.node)
	case o.Elem != w.before.DType:
		return nil, pass.Reason{Code: pass.DType, Detail: fmt.Sprintf("%s cast to %s", w.before.DType, o.Elem)}
	}
	f.transposed = o.Transposed
	if reason := f.inspect(o.Shape); !reason.None() {
		return nil, reason
	}
	if f.node.Input(1-f.input) == nil || len(f.node.Outputs) == 0 || f.node.Outputs[0] == nil {
		return nil, f.unsupported("no other input, or no output")
	}
	if r := factorRank(f.node, f.input); r > 0 {
		return nil, pass.Reason{Code: pass.AlreadyFactored, Detail: fmt.Sprintf("rank %d", r)}
	}
	return f, pass.Reason{}
}

// unsupported is the reason of a use of the weight that is not factored.
func (f *factorization) unsupported(detail string) pass.Reason {
	return pass.Reason{Code: pass.Unsupported, Detail: detail}.At(f.node)
}

// inspect sets rows, columns and kind by the operator, for a weight of that shape, or returns the reason why it is not
// supported.
func (f *factorization) inspect(shape []int64) pass.Reason {
	n := f.node
	if n.Op.Is("Conv") {
		return f.lookConv(shape)
	}
	if len(shape) != 2 {
		return pass.Reason{Code: pass.Shape, Detail: fmt.Sprintf("rank %d of a matrix", len(shape))}
	}
	f.rows, f.cols = shape[0], shape[1]
	if look := matrixOperators[operator.Name(n.Op)]; look == nil || !look(f) {
		return f.unsupported(fmt.Sprintf("input %d", f.input))
	}
	return pass.Reason{}
}

// matrixOperators are the operators with matrices that can be factored.
var matrixOperators = map[string]func(*factorization) bool{
	"MatMul": (*factorization).lookMatMul,
	"Gemm":   (*factorization).lookGemm,
}

func (f *factorization) lookMatMul() bool {
	f.kind = factorKind{f.input == 0, rewriteMatMul}
	return true
}

func (f *factorization) lookGemm() bool {
	f.kind = factorKind{false, rewriteGemm}
	if f.node.Int("transB", 0) != 0 {
		f.rows, f.cols, f.transposed = f.cols, f.rows, !f.transposed
	}
	return f.input == 1 && f.node.Int("transA", 0) == 0
}

func (f *factorization) lookConv(shape []int64) pass.Reason {
	if f.input != 1 {
		return f.unsupported(fmt.Sprintf("input %d", f.input))
	}
	if len(shape) < 3 {
		return pass.Reason{Code: pass.Shape, Detail: fmt.Sprintf("rank %d of filters", len(shape))}
	}
	if groups := f.node.Int("group", 1); groups != 1 {
		return f.unsupported(fmt.Sprintf("%d groups", groups))
	}
	f.rows, f.cols, f.kernel = shape[0], product(shape[1:]), shape[1:]
	f.kind = factorKind{true, rewriteConv}
	return pass.Reason{}
}

// factorRank is the rank of two successive products, one of them n's, that are the factors of a larger matrix; 0 if
// there are none.
func factorRank(n *ir.Node, input int) int64 {
	if first := n.Input(1 - input).Producer(); first != nil {
		if r := rankBetween(first, n); r > 0 {
			return r
		}
	}
	if next := n.Outputs[0].OnlyConsumer(); next != nil {
		return rankBetween(n, next)
	}
	return 0
}

// rankBetween is the width between two products if only the second reads the first.
func rankBetween(first, second *ir.Node) int64 {
	in, middle := linearWidths(first)
	middle2, out := linearWidths(second)
	if len(first.Outputs) == 0 || first.Outputs[0] == nil {
		return 0
	}
	value := first.Outputs[0]
	// Factors of a lower rank have fewer elements than the product; a bias in between makes it another function.
	if middle == 0 || middle != middle2 || len(value.Uses()) != 1 || first.Input(2) != nil || (in+out)*middle >= in*out {
		return 0
	}
	return middle
}

// linearWidths are the numbers of inputs and outputs of each position of a product with a
// constant, or zeros.
func linearWidths(n *ir.Node) (in, out int64) {
	if !ir.DefaultDomain(n.Op.Domain) {
		return 0, 0
	}
	for i, v := range n.Inputs()[:min(2, len(n.Inputs()))] {
		o := pass.Trace(v)
		if o == nil || !o.Trouble.None() {
			continue
		}
		f := &factorization{node: n, input: i}
		if f.inspect(o.Shape).None() {
			if f.kind.rightFirst {
				return f.cols, f.rows
			}
			return f.rows, f.cols
		}
	}
	return 0, 0
}

// addFactors makes constants of the factors: v, which keeps its name, and a new one. It returns them in the order
// of the products.
func (f *factorization) addFactors(v *ir.Value, a, b *ir.Tensor) (first, second *ir.Value) {
	v.SetConst(a)
	f.a, f.b = v, v.Graph().AddConst("w", b)
	if f.kind.rightFirst {
		return f.b, f.a
	}
	return f.a, f.b
}

func rewriteMatMul(f *factorization, first, second *ir.Value) {
	n, x := f.node, 1-f.input
	in := make([]*ir.Value, 2)
	in[x], in[f.input] = n.Input(x), first
	n.SetInput(x, n.Graph().Insert(n, "MatMul", in))
	n.SetInput(f.input, second)
}

func rewriteGemm(f *factorization, first, second *ir.Value) {
	n := f.node
	n.SetInput(0, n.Graph().Insert(n, "MatMul", []*ir.Value{n.Input(0), first}))
	n.SetInput(1, second)
	n.RemoveAttr("transB")
}

// rewriteConv moves the attributes of the window to the first convolution.
func rewriteConv(f *factorization, first, second *ir.Value) {
	n := f.node
	var attrs []*ir.Attr
	for _, name := range []string{"auto_pad", "dilations", "kernel_shape", "pads", "strides"} {
		if a := n.Attr(name); a != nil {
			attrs = append(attrs, a)
			n.RemoveAttr(name)
		}
	}
	n.SetInput(0, n.Graph().Insert(n, "Conv", []*ir.Value{n.Input(0), first}, attrs...))
	n.SetInput(1, second)
}
