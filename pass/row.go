package pass

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

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
	Module     string   // path of the module that it is part of; empty if it is not known
	Status     Status
	Reason     Reason   // why it was skipped, or what is noted
	Notes      []Reason // what else is worth knowing of a change
	Form       Form     // how it is stored now
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

// leftAs reports whether r is the change that made t of a weight, and nothing else.
func (r Row) leftAs(t *ir.Tensor) bool {
	return r.Status == Changed && len(r.After) == 1 && r.After[0].Tensor == t
}

// then is one row for the change r and the change next of the same step, which found what r made: a layer that a
// normalization is folded into before it is quantized.
func (r Row) then(next Row) Row {
	next.Before, next.Counted = r.Before, r.Counted
	next.SharedWith = cmp.Or(next.SharedWith, r.SharedWith)
	next.Notes = slices.Concat(r.Notes, next.Notes)
	first, second := r.Restore, next.Restore
	next.Restore = nil
	if first != nil && second != nil {
		next.Restore = func(parts []*ir.Tensor) *ir.Tensor { return first([]*ir.Tensor{second(parts)}) }
	}
	return next
}
