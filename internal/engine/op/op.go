package op

import (
	"errors"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// An Op is one row of the table: the implementation of an operator from an opset version on. An operator whose
// semantics changed has a row for each version.
type Op struct {
	Domain string // empty for ai.onnx
	Type   string
	Since  int64 // the first opset version of this row

	// Shape returns the types of the node's outputs, in order, for the types of its inputs. Data of inputs is nil,
	// except for constants and values that follow from shapes. If the result depends on unknown data it returns
	// ErrUnknown, and is called again when they are known. If Shape is nil, the types are known after Run only, which
	// creates its outputs with Call.Make or sets them in Call.Out.
	//
	// It must not panic on any input: it validates shapes, types and attributes, and its errors name the input.
	Shape func(n *Node, in []*ir.Array) ([]ir.Spec, error)

	// Run computes the outputs that Shape declared. Their memory is not cleared.
	Run func(c *Call) error

	// Work, if set, is the number of bytes of Call.Work that Run needs.
	Work func(n *Node, in []*ir.Array, workers int) int64

	// Prepare, if set, prepacks constant inputs for Run, once, when the model is loaded. in holds nil for absent and
	// non-constant inputs. A nil result means that there is nothing to prepare. If it brings an input that Decodes
	// accepts into another form, its array has no data: n.Packed has them. It does so with a Filled or Sparse, and
	// without Arrange with all.
	Prepare func(n *Node, in []*ir.Array, p *Pool) (*Prepared, error)

	// States are values of the types that State can have and that a session can store for later ones: numbers, and
	// slices, pointers and structs of them, that Run does not modify.
	States []any

	// Pack, if set, returns the output of a node in packed form, nil if that is not possible: its inputs are constants.
	// packed holds those that are packed, and in the others, without data while memory is only planned.
	Pack func(n *Node, in []*ir.Array, packed []Packed) Packed
	// Packs reports whether Pack packs dense inputs, too.
	Packs bool
	// Decodes, if set, reports whether Run accepts constant input i of this type, n.Packed, as it is, or Prepare does
	// if there is no Arrange. Without a type it reports whether it may.
	Decodes func(n *Node, i int, a *ir.Array) bool

	// Arrange, if set, arranges constant input i, which has this type and which Decodes accepted.
	Arrange func(n *Node, i int, a *ir.Array, packed Arranged, p *Pool)

	// Rows, if set, reports whether Run reads only some rows of a constant input 0 of this type. If the constant is
	// streamed, Run reads them through Call.Rows.
	Rows func(n *Node, table *ir.Array) bool

	// ChannelsLast, if set, returns the layouts of images that Run supports for a prepared node. in has the types of
	// constant inputs, and nil for others. Inputs of InPlace have the layout of the output.
	ChannelsLast func(n *Node, in []*ir.Array) Layouts

	InPlace []int // inputs whose memory output 0 may reuse (in-place), if sizes are equal and their lifetime ends here
	View    bool  // output 0 shares input 0's memory, with another shape or type; Run is not called for it
	OfShape bool  // the result depends on the inputs' types only, not on their data
	Impure  bool  // two runs may differ: never constant-folded

	// Writes are inputs that Run modifies, which must be inputs of the model. It runs as soon as its inputs are
	// computed and their other consumers have run, even if its outputs have no consumers.
	Writes []int
}

// Layouts are the layouts of images that an operator supports in its input 0 and output 0, besides channels first
// (NCHW).
type Layouts uint8

// The layouts that an operator supports.
const (
	ChannelsFirst Layouts = iota // no other one
	LastOutput                   // the output with channels first or last (NHWC)
	EqualLayouts                 // both images with channels last, or none
	LastInput                    // the output with channels first or last if the input has channels last
	AnyLayouts                   // each image with channels first or last
)

// Prepared is the result of Op.Prepare.
type Prepared struct {
	State any   // available to Run as Node.State
	Bytes int64 // size of the memory that State references
	Drops []int // inputs that Run no longer reads
}

// ErrUnknown means that an output's shape depends on data that are not known yet.
var ErrUnknown = errors.New("the shape depends on data")

// IsKnown reports whether a's data are available.
func IsKnown(a *ir.Array) bool {
	return a != nil && (a.Kind != ir.Dense || a.Data != nil || a.Text != nil || a.Elems() == 0)
}

// Newest is a domain with the operators of ai.onnx, in the latest version: nodes that are added to a graph are
// independent of the graph's opset.
const Newest = operator.Newest
