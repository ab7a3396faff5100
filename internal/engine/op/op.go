package op

import (
	"errors"

	"github.com/mcompress/mcompress/ir"
)

// An Op is one row of the table: how an operator is computed from an opset version on.
// An operator whose meaning changed has a row for each meaning.
type Op struct {
	Domain string // empty for ONNX's own
	Type   string
	Since  int64 // the first opset version that this row is for

	// Shape gives the type of each of the node's outputs, in order, from its inputs'.
	// It is called before any data exists: an input's Data is nil then unless it is a
	// constant or follows from shapes. Where the result depends on data that are not there
	// it returns ErrUnknown, and is asked again when they are. A nil Shape says that only
	// Run can tell, which then makes its outputs by Call.Make or sets them in Call.Out.
	//
	// It must not panic on any input: it is the place where shapes, types and
	// attributes that do not fit are found, and its errors name the input.
	Shape func(n *Node, in []*ir.Array) ([]ir.Spec, error)

	// Run computes the outputs that Shape declared. Their memory is not cleared.
	Run func(c *Call) error

	// Work, where set, is the number of bytes of Call.Work that Run needs.
	Work func(n *Node, in []*ir.Array, workers int) int64

	// Prepare, where set, turns constant inputs into what Run would rather have, once, when the model is
	// loaded. in holds nil for absent inputs and for those that are not constant.
	// A nil result says that there is nothing to prepare.
	Prepare func(n *Node, in []*ir.Array, p *Pool) (*Prepared, error)

	// Rows, where set, reports whether Run reads no more of a constant input 0 of this type than some rows. It
	// finds them in Call.Rows then, where the constant is not held in memory.
	Rows func(n *Node, table *ir.Array) bool

	InPlace []int // inputs whose memory output 0 may take, if it has their size and they die here
	View    bool  // output 0 is input 0's memory with another shape or type; Run is not called for it
	OfShape bool  // the result depends on the inputs' types only, not on their data
	Impure  bool  // two runs may differ: it is never computed ahead

	// Writes are inputs that Run changes, which must be inputs of the model. It runs as soon as its inputs are
	// there and everybody else who reads those has run, whether its outputs are read or not.
	Writes []int
}

// Prepared is the result of Op.Prepare.
type Prepared struct {
	State any   // given to Run as Node.State
	Bytes int64 // of memory that State holds on to
	Drops []int // inputs that Run does not read any more
}

// ErrUnknown says that an output's shape depends on data that are not there yet.
var ErrUnknown = errors.New("the shape depends on data")

// Known reports whether a's data are there.
func Known(a *ir.Array) bool {
	return a != nil && (a.Kind != ir.Dense || a.Data != nil || a.Text != nil || a.Elems() == 0)
}

// Newest is a domain whose operators are ONNX's own, as of the version of this domain that the
// model imports: nodes added to a graph need not follow what the graph was written for.
const Newest = "mcompress.onnx"
