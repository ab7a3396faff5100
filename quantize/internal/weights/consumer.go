package weights

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// ResolveActivationRank sets the rank of the activation where scales can only be reshaped with a known rank, or returns
// why it cannot be used.
func (s *Consumer) ResolveActivationRank() pass.Reason {
	// Scales of columns broadcast to the output from the right, whatever its rank; those of rows have to be reshaped.
	if s.Side == Lookup || s.Side == Right && len(s.Shape) <= 2 && !s.Mirrored {
		return pass.Reason{}
	}
	if s.Node.Op.Is("Gemm") {
		s.ActivationRank = 2
		return pass.Reason{}
	}
	rank, ok := opset.Rank(s.Activation())
	s.ActivationRank = rank
	switch {
	case !ok:
		return pass.Reason{Code: pass.Unsupported, Detail: "unknown rank of the other input"}.At(s.Node)
	case rank < 2 && len(s.Shape) > 2:
		return pass.Reason{Code: pass.Unsupported, Detail: "vector as the other input"}.At(s.Node)
	}
	return pass.Reason{}
}

// RequiresUint8 reports whether int8 weights would fail in ONNX Runtime: its fused node has no kernel for them on the
// left; and weights of several products, or in another scope, cannot be converted for CPUs without VNNI, so that
// products saturate or the model does not load.
func (s *Consumer) RequiresUint8(w *Weight) bool {
	if s.Side == Lookup {
		return false
	}
	products := 0
	for _, o := range w.Consumers {
		if o.Side != Lookup {
			products++
		}
	}
	return s.Side == Left || products > 1 || s.Node.Graph() != w.Base.Graph()
}

// TransposesActivation reports whether Gemm transposes the activation.
func (s *Consumer) TransposesActivation() bool {
	return s.Node.Op.Is("Gemm") && s.Node.Int([]string{"transA", "transB"}[1-s.Use.Index], 0) != 0
}

// VectorActivation reports whether the activation is, or may be, a vector.
func (s *Consumer) VectorActivation() bool {
	rank, ok := opset.Rank(s.Activation())
	return !s.Node.Op.Is("Gemm") && ok && rank < 2
}

// A Side is the operand of a product that the constant is.
type Side uint8

// The operands.
const (
	Right Side = iota
	Left
	Lookup // rows are looked up, without a product
)

// A Consumer is one use of a constant by MatMul, Gemm or Gather.
type Consumer struct {
	Node           *ir.Node
	Side           Side
	Shape          []int64 // of the operand, after Gemm's transposition
	Transposed     bool    // the operand is the transpose of the base, Gemm's attribute included
	Elem           ir.DType
	Use            ir.Use      // the input that the operand is
	Unsupported    pass.Reason // none if it is supported
	ActivationRank int         // of Activation, where it is needed and known
	Mirrored       bool        // rewritten as the transpose of a product with the constant on the right
}

// ConsumerAt is the product of n with a constant, or its lookup in one if embeddings is set; nil if it is neither.
func ConsumerAt(n *ir.Node, embeddings bool) *Consumer {
	for _, in := range operator.Of(n).Weights() {
		if o := pass.Trace(n.Input(in.Index)); o != nil {
			if s := newConsumer(pass.Consumer{Use: ir.Use{Node: n, Index: in.Index}, Input: in, Operand: o},
				embeddings); s != nil {
				return s
			}
		}
	}
	return nil
}

// IsProduct reports whether n is one of ONNX's matrix products: MatMul or Gemm.
func IsProduct(n *ir.Node) bool { return ir.DefaultDomain(n.Op.Domain) && operator.Of(n).Product() }

// newConsumer is k as the operand of MatMul or Gemm with an activation, or as the table of Gather; nil if it is
// neither.
func newConsumer(k pass.Consumer, embeddings bool) *Consumer {
	n, o := k.Node, k.Operand
	s := &Consumer{Node: n, Side: Right, Elem: o.Elem, Shape: o.Shape, Transposed: o.Transposed, Use: k.Use,
		Unsupported: o.Trouble}
	matrix := IsProduct(n)
	switch {
	case !matrix && !(n.Op.Is("Gather") && embeddings) || !o.Base.Const.DType.IsFloat():
		return nil
	// A product of constants, or a lookup such as in a codebook.
	case len(n.Inputs()) < 2 || isConstant(n.Input(1-k.Index), maxConstantNodes):
		return nil
	// Malformed, or dead: a product without an output crashed dynamic-int8.
	case len(n.Outputs) == 0 || n.Outputs[0] == nil:
		return nil
	case matrix:
		if k.Index == 0 {
			s.Side = Left
		}
		// Seen as a MatMul: the attribute is one more transposition of the constant.
		if n.Op.Is("Gemm") && n.Int([]string{"transA", "transB"}[k.Index], 0) != 0 && len(s.Shape) == 2 {
			s.Shape, s.Transposed = []int64{s.Shape[1], s.Shape[0]}, !s.Transposed
		}
	default:
		s.Side = Lookup
	}
	if s.Unsupported.None() {
		s.Unsupported = s.unsupported(o)
	}
	return s
}

// maxConstantNodes is the number of nodes up to which a value is computed from constants: more than any form of weights
// has.
const maxConstantNodes = 12

// isConstant reports whether v is a constant, or computed from constants by a chain of at most depth nodes.
func isConstant(v *ir.Value, depth int) bool {
	if v == nil || v.Const != nil {
		return v != nil
	}
	n := v.Producer()
	return n != nil && depth > 0 && len(n.Inputs()) > 0 && !slices.ContainsFunc(n.Inputs(), func(in *ir.Value) bool {
		return in != nil && !isConstant(in, depth-1)
	})
}

// unsupported is the reason why s cannot be rewritten.
func (s *Consumer) unsupported(o *pass.Operand) pass.Reason {
	n := s.Node
	unsupported := pass.Reason{Code: pass.Unsupported}.At(n)
	switch caller, axis := pass.FromCaller(n), n.Int("axis", 0); {
	case !caller.None():
		return caller
	case o.Elem == ir.Double || o.Base.Const.DType == ir.Double:
		return pass.Reason{Code: pass.DType, Detail: "float64"}
	case len(s.Shape) == 0:
		return pass.Reason{Code: pass.Shape, Detail: "scalar"}
	case s.Side != Lookup:
		return pass.Reason{}
	case axis != 0:
		unsupported.Detail = fmt.Sprintf("axis %d", axis)
	case !slices.Equal(s.BaseShape(), o.Base.Const.Shape):
		unsupported.Detail = "reshaped table"
	case len(s.Shape) < 2:
		unsupported.Detail = "table of rank 1"
	default:
		return pass.Reason{}
	}
	return unsupported
}

// A Mul of the output takes a notable part of the time of products of matrices with fewer rows, or elements.
const (
	minSummed     = 256
	minMultiplied = 1 << 18
)

// ShortProduct reports whether the product takes notably longer with a Mul of its output.
func (s *Consumer) ShortProduct() bool {
	elems := int64(1)
	for _, n := range s.Shape {
		elems *= n
	}
	return elems < minMultiplied || s.Shape[0] < minSummed
}

// Activation is the other operand, or Gather's indices. It is not stored, as rewriting its producer replaces it.
func (s *Consumer) Activation() *ir.Value { return s.Node.Input(1 - s.Use.Index) }

// BaseShape is the shape of the base as s sees it: the operand, transposed back.
func (s *Consumer) BaseShape() []int64 {
	if s.Transposed {
		return []int64{s.Shape[1], s.Shape[0]}
	}
	return s.Shape
}

// ChannelAxis is the output axis of BaseShape, with a scale for each index. It is -1 for vectors, which have one scale.
func (s *Consumer) ChannelAxis() int {
	rank := len(s.Shape)
	axis := rank - 1 // right: columns
	switch {
	case rank == 1:
		return -1
	case s.Side == Lookup:
		axis = 0
	// Rows are outputs of W·X.
	case s.Side == Left:
		axis = rank - 2
	}
	if s.Transposed {
		return 1 - axis
	}
	return axis
}

// Matrix is the size of the matrix of a product, or of the transposed table of a lookup, so that a lookup reads
// columns. ColumnMajor reports whether the base holds its columns one after another.
func (s *Consumer) Matrix() (rows, cols int64, columnMajor bool) {
	if s.Side == Lookup {
		return s.Shape[1], s.Shape[0], !s.Transposed
	}
	return s.Shape[0], s.Shape[1], s.Transposed
}

// Mirror turns W·X into the transpose of Xᵀ·Wᵀ. It requires the rank of X; a vector is its own transpose.
func (s *Consumer) Mirror() {
	s.Side, s.Mirrored, s.Transposed = Right, true, !s.Transposed
	s.Shape = []int64{s.Shape[1], s.Shape[0]}
}

// StaysQuantized reports whether ONNX Runtime keeps the weight quantized at run time after DequantizeLinear: a table,
// or a right matrix of one of types, with an activation of the same type.
func (s *Consumer) StaysQuantized(v *ir.Value, types ...ir.DType) bool {
	if s.Side == Lookup {
		return s.Unsupported.None()
	}
	return s.Unsupported.None() && s.Side == Right && len(s.Shape) == 2 && s.Elem == v.Const.DType &&
		slices.Contains(types, s.Elem)
}

// SameScope reports whether all products are in one graph that can hold the quantized weight: ONNX Runtime does not
// load inputs of DequantizeLinear from an outer scope.
func SameScope(v *ir.Value, ss []*Consumer) bool {
	for _, s := range ss {
		if s.Node.Graph() != ss[0].Node.Graph() {
			return false
		}
		if s.Side == Lookup && v.Graph() != s.Node.Graph() {
			return false
		}
	}
	return true
}
