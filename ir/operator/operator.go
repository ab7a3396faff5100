// Package operator is the table of facts about ONNX operators: which inputs hold weights and biases and how their axes
// are used, which inputs and outputs are quantized, which operators only move elements, and which compute elements
// or channels independently. Every package that needs such a fact reads it here.
//
// It holds what follows from the specification of an operator (ONNX's own operators of domain ai.onnx, and the contributed
// ones of com.microsoft), and the element types of ONNX Runtime's kernels for CPUs, but nothing about particular models, and nothing about what a compression method does with it.
package operator

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Facts are what is known of an operator. The zero value is that of operators that are not in the table.
type Facts struct {
	Inputs []Input // weights, biases, and other parameters among the inputs

	// QuantizedOutput is set where the first output is quantized data.
	QuantizedOutput bool
	Move            Move
	Elementwise     Elementwise
	// Spatial is set where the first input is N × C × D1 × …, with one or more spatial axes.
	Spatial bool
	// PerChannel is set where a channel, axis 1, of the output depends on the same channel of the first input alone.
	PerChannel bool
	// Homogeneous is set where f(s·x) = s·f(x) for s > 0, element by element or channel by channel.
	Homogeneous bool
	// Predicate is set where the elements of the output are bool, whatever those of the inputs.
	Predicate bool
	// Reduction is set for the Reduce operators.
	Reduction bool
	// Float16CPU is set where ONNX Runtime computes float16 on CPUs. For other operators it casts float16 to float32.
	Float16CPU bool
}

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

// A Role is the purpose of an input.
type Role uint8

// The roles. Inputs without one are activations, indices or shapes.
const (
	Activation Role = iota
	Matrix          // factor of a matrix product
	Filter          // of a convolution
	Gates           // of a recurrent layer
	Table           // rows that are looked up: an embedding
	Data            // DequantizeLinear's: any of the above
	Bias            // added to the result, an element for each output channel
	InputBias       // added to the input of a normalization
	Gain            // of a normalization: multiplies channels of the normalized input
	Shift           // of a normalization: is added to those
	Slope           // of PRelu
	Statistic       // running mean or variance
	Setting         // bound, factor, ratio or fill value
)

// IsWeight reports whether r is a matrix, filter, gates or table.
func (r Role) IsWeight() bool { return r >= Matrix && r <= Table }

// An Input is an input of an operator that holds a parameter.
type Input struct {
	Index     int
	Role      Role
	Quantized bool  // it holds quantized data
	Params    []int // inputs with its scales, zero points and the like, where it is quantized

	axes func(n *ir.Node, rank int) (Axes, bool)
}

// Axes are the axes of a weight, counted from the first one. An axis is in one of the lists.
type Axes struct {
	Batch     []int // independent products: batches of MatMul, directions of LSTM
	Output    []int // an index is an output channel, or a row of a table
	Reduction []int // summed over, or the elements of a row
}

// Independent are the axes with independent results for each index: Batch and Output.
func (a Axes) Independent() []int { return slices.Concat(a.Batch, a.Output) }

// Axes are the axes of input in at node n, whose operator it belongs to, for an operand of that rank. They are not known
// for roles without axes and for ranks that the operator does not take.
func (in Input) Axes(n *ir.Node, rank int) (Axes, bool) {
	if in.axes == nil {
		return Axes{}, false
	}
	return in.axes(n, rank)
}

// none has no facts.
var none Facts

// Of is the facts about n's operator.
func Of(n *ir.Node) *Facts { return Lookup(n.Op) }

// Lookup is the facts about an operator, those of the zero value where there are none.
func Lookup(id ir.OpID) *Facts {
	if id.Overload != "" {
		return &none
	}
	name := id.Type
	if !ir.DefaultDomain(id.Domain) {
		name = id.Domain + "." + id.Type
	}
	if f := facts[name]; f != nil {
		return f
	}
	return &none
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
