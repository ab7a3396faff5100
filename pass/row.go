package pass

import "github.com/mcompress/mcompress/ir"

// A Status says what became of a weight.
type Status uint8

// The statuses of a row.
const (
	Skipped Status = iota
	Changed
	Noted // something else worth knowing: it counts neither way
)

var statusNames = [...]string{"skipped", "changed", "noted"}

func (s Status) String() string { return statusNames[s] }

// A Role says what a stored tensor is for.
type Role string

// The roles of a part.
const (
	Payload Role = "payload" // values or codes
	Scales  Role = "scales"  // scales and zero points
	Indices Role = "indices" // positions, masks, gaps, pointers
)

// A Part is one tensor that is stored in a weight's place.
type Part struct {
	Role  Role
	Value *ir.Value // the constant that holds it; nil for a tensor inside an attribute
	*ir.Tensor
}

// A Row is one line of the ledger.
type Row struct {
	Method     string
	Tensor     string
	Scope      string   // the subgraph or function the tensor stands in; empty for the main graph
	Consumers  []string // "MatMul encoder.0.query", one for each node that reads it
	Status     Status
	Reason     string // why it was skipped, or what else is worth knowing
	Form       Form   // how it is stored now
	Before     *ir.Tensor
	After      []Part
	SharedWith string // the tensor whose payload stands for this one too

	// Counted says that the weight is part of coverage's denominator: a float of
	// rank 1 or more, selected and not below the smallest size.
	Counted bool

	// Restore makes the dense tensor, of Before's type and shape, from the parts
	// in the order of After. It is nil where nothing can be compared.
	Restore func(parts []*ir.Tensor) *ir.Tensor
}
