package operator

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
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
	// Shared is the number of groups that share the indices of Output and have parts of Reduction, 0 for one.
	Shared int64
}

// Channels is the number of output channels of a weight of that shape, for each index of Batch.
func (a Axes) Channels(shape []int64) int64 { return sizeOf(shape, a.Output) * max(1, a.Shared) }

// FanIn is the number of products in the sum of an output channel.
func (a Axes) FanIn(shape []int64) int64 { return sizeOf(shape, a.Reduction) / max(1, a.Shared) }

func sizeOf(shape []int64, axes []int) int64 {
	n := int64(1)
	for _, i := range axes {
		n *= shape[i]
	}
	return n
}

// Independent are the axes with independent results for each index: Batch and Output.
func (a Axes) Independent() []int { return slices.Concat(a.Batch, a.Output) }

// Axes are the axes of input in at node n, whose operator it belongs to, for an operand of that rank. They are not
// known for roles without axes and for ranks that the operator does not take.
func (in Input) Axes(n *ir.Node, rank int) (Axes, bool) {
	if in.axes == nil {
		return Axes{}, false
	}
	return in.axes(n, rank)
}

// An Indexing is an operator's selection of elements along one axis of an input: elements of input Indices are
// positions on that axis of input Table.
type Indexing struct{ Indices, Table int }

// Axis is the axis at node n, counted from the last one if negative.
func (Indexing) Axis(n *ir.Node) int64 { return n.Int("axis", n.Int("gather_axis", 0)) }

// A State is an input that continues an earlier run from one of its outputs, and grows along an axis by the positions
// of the run.
type State struct{ Input, Output, Axis int }

// A Sum is the sum of its inputs that an operator normalizes: with the residual, or of embeddings.
type Sum struct {
	Output        int    // with the sum; the first output is the normalized sum
	Normalization string // type of the operator that normalizes its first input alone in the same way
}
