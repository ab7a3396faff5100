package pass

import "github.com/mcompress/mcompress/ir"

// A Reason is why a weight was skipped, or a note about it, as data. Package report makes sentences of reasons.
type Reason struct {
	Code     Code
	Operator string // of the node that it is about
	Node     string // its name, if it has one
	Detail   string // figures and names, such as "64 bytes → 80 bytes"
}

// At is r about n.
func (r Reason) At(n *ir.Node) Reason {
	r.Operator, r.Node = n.Op.String(), n.Name
	return r
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r == Reason{} }

// Notes are the given reasons without empty ones.
func Notes(reasons ...Reason) []Reason {
	var notes []Reason
	for _, r := range reasons {
		if !r.None() {
			notes = append(notes, r)
		}
	}
	return notes
}
