package pass

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Status is the result of a step for a weight.
type Status uint8

// The statuses of a row.
const (
	Skipped Status = iota
	Changed
	Noted // a note, which counts neither as changed nor as skipped
)

var statusNames = [...]string{"skipped", "changed", "noted"}

func (s Status) String() string { return statusNames[s] }

// A Role is the purpose of a stored tensor.
type Role string

// The roles of a part.
const (
	Payload Role = "payload" // values, quantized or not
	Scales  Role = "scales"  // scales and zero points
	Indices Role = "indices" // positions, masks, gaps, pointers
)

// A Part is one of the tensors that replace a weight.
type Part struct {
	Role  Role
	Value *ir.Value // the constant that holds it; nil for a tensor inside an attribute
	*ir.Tensor
	// Folded is the bytes that runtimes fold the tensor into on loading, where these are not the form's: -1 for none.
	Folded int64
}

// A Row is one line of the ledger.
type Row struct {
	Method     string
	Tensor     string
	Scope      string   // the subgraph or function of the tensor; empty for the main graph
	Consumers  []string // "MatMul encoder.0.query", one for each consumer
	Module     string   // path of the module that it is part of; empty if it is not known
	Status     Status
	Reason     Reason   // why it was skipped, or what is noted
	Notes      []Reason // details of a change
	Form       Form     // of the result
	Before     *ir.Tensor
	After      []Part
	SharedWith string // the tensor whose payload is shared

	// Counted reports whether the weight is part of coverage's denominator: a float of rank 1 or more, or quantized
	// values that the method supports; selected and not below the minimum size.
	Counted bool

	// Restore makes the dense tensor, of Before's type and shape, from the parts in the order of After. It is nil if
	// the weight cannot be compared with the original.
	Restore func(parts []*ir.Tensor) *ir.Tensor

	// Bound is what the parts must hold; nil if there is none.
	Bound *Bound

	// Sharing is the entries of codebooks that elements have (weight sharing); nil without codebooks.
	Sharing *Sharing
}

// A Sharing is the entries of codebooks that the elements of a weight have. Training may change the entries: element i
// is entry Indices[i] times Scales[i/Block]. A method stores a weight that Restore makes with other entries with these
// entries, unchanged.
type Sharing struct {
	Codebook        int        // the part in After that has the entries, as float32
	Indices, Scales *ir.Tensor // lazy tensors of int32 and float32; Scales is nil without scales
	Block           int64      // elements that share a scale
}

// then merges the change r and the change next that the same step made to its result, such as folding a normalization
// into a weight and quantizing it.
func (r Row) then(next Row) Row {
	// Bound stays that of next, whose Of is the result of r: it was encoded from that.
	next.Before, next.Counted = r.Before, r.Counted
	next.SharedWith = cmp.Or(next.SharedWith, r.SharedWith)
	if slices.ContainsFunc(next.Notes, isPruned) { // which counts what was pruned before, too
		r.Notes = slices.DeleteFunc(slices.Clone(r.Notes), isPruned)
	}
	next.Notes = slices.Concat(r.Notes, next.Notes)
	// Pruning in place does not change how an earlier change of the step stored the weight.
	if next.Form == InPlace {
		next.Form = r.Form
	}
	first, second := r.Restore, next.Restore
	next.Restore = nil
	if first != nil && second != nil {
		// The last change is undone first.
		next.Restore = func(parts []*ir.Tensor) *ir.Tensor { return first([]*ir.Tensor{second(parts)}) }
	}
	return next
}

func isPruned(r Reason) bool { return r.Code == Pruned }

// ofQuantized reports whether r is about a constant that is not float and that the method supports: quantized values,
// which sparse forms store, too.
func (r Row) ofQuantized() bool {
	return !r.Before.DType.IsFloat() && len(r.Before.Shape) > 0 && (r.Status == Changed || r.Reason.Code == NoSparseForm)
}

// Labels are the names of nodes in rows: operator and node name.
func Labels(ns []*ir.Node) []string {
	labels := make([]string, len(ns))
	for i, n := range ns {
		labels[i] = strings.TrimSpace(n.Op.String() + " " + n.Name)
	}
	return labels
}

// Scope is the path of functions and subgraphs down to g; empty for the main graph.
func Scope(g *ir.Graph) string {
	var path []string
	for ; g != nil; g = g.Outer {
		switch {
		case g.Owner != nil:
			path = append([]string{g.Owner.Label() + "/" + g.Name}, path...)
		case g.Function() != nil:
			path = append([]string{g.Function().ID.String()}, path...)
		}
	}
	return strings.Join(path, "/")
}
