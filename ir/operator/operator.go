// Package operator is the table of facts about ONNX operators: which inputs hold weights and biases and how their axes
// are used, which inputs and outputs are quantized, which operators only move elements, and which compute elements
// or channels independently. Every package that needs such a fact reads it here.
//
// It holds what follows from the specification of an operator (ONNX's own operators of domain ai.onnx, the contributed
// ones of com.microsoft, and those of the engine's training steps in domain mcompress) and from its treatment by ONNX
// Runtime, nothing about particular models, and nothing about what a compression method does with it. A rule that is
// code, such as a gradient, is in a table of functions of the package that applies it.
package operator

import (
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Facts are what is known of an operator. The zero value is that of operators that are not in the table.
type Facts struct {
	Inputs   []Input    // weights, biases, and other parameters among the inputs
	Indexing []Indexing // inputs that hold positions in another input
	States   []State    // inputs that continue an earlier run: caches of keys and values

	// QuantizedOutput is set where the first output is quantized data.
	QuantizedOutput bool
	// ElemAttr is the attribute with the element type of the first output, or with a tensor of that type; empty if
	// there is none.
	ElemAttr string

	Move        Move
	Elementwise Elementwise
	Affine      Affine
	// Selects is set where each element of the output is an element of an input at its position, or a fill value, by a
	// condition, bound or position.
	Selects bool
	// Variadic is set where any number of inputs is accepted, all of which have the same meaning.
	Variadic bool
	// Commutative is set where the first two inputs can be exchanged.
	Commutative bool
	// Nonlinearity is set for activation functions: elementwise functions that follow the layers of a network.
	Nonlinearity bool
	// Distribution is set where the output is a distribution along an axis of scores, or its logarithm.
	Distribution bool
	// Attention is set where the first three inputs are queries, keys and values.
	Attention bool
	Masks     []int // of it: inputs whose last axis is the keys, those of the cache included
	Total     int   // of it: the input with the number of those keys, 0 for none
	Lengths   int   // of it: the input with the number of those keys of each sequence less one, 0 for none
	Rotary    []int // of it: inputs with cosines and sines, one row for each position

	// Sum is set for normalizations that first add their inputs.
	Sum *Sum

	// Spatial is set where the first input is N × C × D1 × …, with one or more spatial axes.
	Spatial bool
	// PerChannel is set where a channel, axis 1, of the output depends on the same channel of the first input alone.
	PerChannel bool
	// Homogeneous is set where f(s·x) = s·f(x) for s > 0, element by element or channel by channel.
	Homogeneous bool
	// Rectifies is set where outputs of inputs with a mean of 0 have a positive mean: they are never negative, or
	// hardly.
	Rectifies bool
	// KeepsMean is set where outputs have a mean if the first input has one, and otherwise hardly; of Variadic
	// operators all inputs.
	KeepsMean bool
	// Bounded is set where outputs have a small magnitude whatever that of the inputs.
	Bounded bool
	// Predicate is set where the elements of the output are bool, whatever those of the inputs.
	Predicate bool
	// Reduction is set for the Reduce operators.
	Reduction bool
	// Float16CPU is set where ONNX Runtime computes float16 on CPUs. For other operators it casts float16 to float32.
	Float16CPU bool

	// LayoutAgnostic is set where the order of axes does not matter once the axes in attributes and constant inputs are
	// renumbered: the operator computes the same channels first and channels last. Operators before FlattensBefore
	// depend on it.
	LayoutAgnostic bool
	// FlattensBefore is the first opset in which the operator works along one axis. In older ones it works on a matrix:
	// the axes before the attribute axis, and the others.
	FlattensBefore int64

	// ControlFlow is set where subgraphs run by a condition, or repeatedly.
	ControlFlow bool
	// Random is set where outputs are random numbers, always or in training.
	Random bool
	// ZeroGradient is set where the outputs are piecewise constant in the inputs, or depend on their shapes only.
	ZeroGradient bool
	Saves        Saves
	Precision    Precision

	// IntegerKernel is set where ONNX Runtime replaces the operator, without weights, between DequantizeLinear and
	// QuantizeLinear by one on integers, according to its optimized graphs.
	IntegerKernel bool
	// PassesDequantize is set where ONNX Runtime's fusions see a DequantizeLinear before the operator as if it were
	// after it.
	PassesDequantize bool
	// Clamps is set where elements are bounded and otherwise kept: ONNX Runtime leaves the operator out before
	// QuantizeLinear, whose range bounds them, too.
	Clamps bool
}

// Affine is the effect of a constant second operand on the first.
type Affine uint8

// The affine operators.
const (
	NotAffine Affine = iota
	Offset           // is added or subtracted
	Factor           // multiplies or divides
)

// Move is how an operator hands on elements of its first input without computing new ones.
type Move uint8

// The moves.
const (
	Computes Move = iota // the output has new values
	View                 // the same elements in the same order: only the shape changes
	Permutes             // the same elements in another order
	Picks                // elements by position: some may be left out or repeated
	Compares             // elements by value: minima, maxima
)

// Keeps reports whether the output has each element of the input once: a view or a permutation.
func (m Move) Keeps() bool { return m == View || m == Permutes }

// Moves reports whether elements are only moved, by position.
func (m Move) Moves() bool { return m == View || m == Permutes || m == Picks }

// Elementwise is how an operator computes elements from elements at the same position.
type Elementwise uint8

// The elementwise operators by what they read.
const (
	NotElementwise Elementwise = iota
	Unary                      // the element of the first input; further inputs are settings
	Broadcasts                 // the elements of all inputs, after broadcasting
)

// Newest is a domain with the operators of ai.onnx in their latest version, in graphs that are built for the engine.
const Newest = "mcompress.onnx"

// none has no facts.
var none Facts

// Of is the facts about n's operator.
func Of(n *ir.Node) *Facts { return Lookup(n.Op) }

// Lookup is the facts about an operator, those of the zero value where there are none.
func Lookup(id ir.OpID) *Facts {
	if f := facts[Name(id)]; f != nil {
		return f
	}
	return &none
}

// Names are the operators of the table, sorted.
func Names() []string { return slices.Sorted(maps.Keys(facts)) }

// Name is id without ONNX's default domain: the key of tables by operator.
func Name(id ir.OpID) string {
	if ir.DefaultDomain(id.Domain) || id.Domain == Newest {
		id.Domain = ""
	}
	return id.String()
}

// Input is the parameter at input i, one of role Activation where there is none.
func (f *Facts) Input(i int) Input {
	for _, in := range f.Inputs {
		if in.Index == i {
			return in
		}
	}
	return Input{Index: i}
}

// With are the inputs of the given roles, in their order.
func (f *Facts) With(roles ...Role) []int {
	var list []int
	for _, in := range f.Inputs {
		if slices.Contains(roles, in.Role) {
			list = append(list, in.Index)
		}
	}
	return list
}

// Weights are the inputs that hold weights in the type that the operator computes in.
func (f *Facts) Weights() []Input {
	return f.inputs(func(in Input) bool { return in.Role.IsWeight() && !in.Quantized })
}

// Quantized are the inputs that hold quantized weights or, for DequantizeLinear, any quantized data.
func (f *Facts) Quantized() []Input {
	return f.inputs(func(in Input) bool { return in.Quantized })
}

// QuantizedBy is the quantized input that input i has scales, zero points or the like for.
func (f *Facts) QuantizedBy(i int) (Input, bool) {
	for _, in := range f.Inputs {
		if slices.Contains(in.Params, i) {
			return in, true
		}
	}
	return Input{}, false
}

// Product reports whether the first two inputs are the factors of a matrix product, as in MatMul and Gemm.
func (f *Facts) Product() bool {
	for i := range 2 {
		if in := f.Input(i); in.Role != Matrix || in.Quantized {
			return false
		}
	}
	return true
}

// Layer reports whether the second input is the weight of a linear or convolutional layer.
func (f *Facts) Layer() bool {
	in := f.Input(1)
	return (in.Role == Matrix || in.Role == Filter) && !in.Quantized
}

// MemoryBound reports whether the cost is that of one or two passes over the elements: elementwise operators and
// normalizations.
func (f *Facts) MemoryBound() bool {
	return !f.Random && (f.Elementwise != NotElementwise || len(f.With(Gain)) > 0)
}

// HasChannels reports whether axis 1 of the first input is channels, each of which has a weight or is processed on its
// own.
func (f *Facts) HasChannels() bool {
	return f.Spatial && (f.PerChannel || len(f.Weights())+len(f.Quantized()) > 0)
}

// MovesInput reports whether the elements of input i are only moved, by position.
func (f *Facts) MovesInput(i int) bool { return f.Move.Moves() && (i == 0 || f.Variadic) }

// Table is the input in which the elements of input i are positions.
func (f *Facts) Table(i int) (Indexing, bool) {
	for _, x := range f.Indexing {
		if x.Indices == i {
			return x, true
		}
	}
	return Indexing{}, false
}

// HoldsQuantized reports whether an input or the output is quantized.
func (f *Facts) HoldsQuantized() bool {
	return f.QuantizedOutput || len(f.Quantized()) > 0
}

func (f *Facts) inputs(ok func(Input) bool) []Input {
	var list []Input
	for _, in := range f.Inputs {
		if ok(in) {
			list = append(list, in)
		}
	}
	return list
}
