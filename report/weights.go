package report

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// A Weight is one tensor of the source and its form after all steps.
type Weight struct {
	Tensor       string   `json:"tensor"`
	Scope        string   `json:"scope"`
	Consumers    []string `json:"consumers"`
	Module       string   `json:"module,omitempty"` // path of the module that the weight is part of
	DType        string   `json:"dtype"`
	Shape        []int64  `json:"shape"`
	Float        bool     `json:"float"`   // a float of rank 1 or more
	Counted      bool     `json:"counted"` // part of coverage's denominator
	Changed      bool     `json:"changed"`
	Methods      []string `json:"methods"`         // that changed it, in order
	Forms        []string `json:"forms"`           // how they store it
	Reason       Reason   `json:"reason,omitzero"` // why no step changed it
	Notes        []Note   `json:"notes,omitempty"` // notes of the steps about it
	SharedWith   string   `json:"shared_with,omitempty"`
	Bytes        Change   `json:"bytes"` // a payload that several weights share counts for the first
	RuntimeBytes int64    `json:"runtime_bytes"`
	Figures
}

// Figures compare a weight before and after. They are absent where
// nothing was measured.
type Figures struct {
	Sparsity *float64 `json:"sparsity,omitempty"` // fraction of elements that are zero, after
	Error    *Error   `json:"error,omitempty"`

	was, is zeros // before and after
}

// zeros counts the elements of a tensor that are zero, of either sign.
type zeros struct{ zeros, elems int64 }

func (z *zeros) add(more zeros) {
	z.zeros += more.zeros
	z.elems += more.elems
}

// weights lists the roots in the order of the ledger.
func (c *chain) weights() []Weight {
	ws := make([]Weight, len(c.roots))
	for i, o := range c.roots {
		first := c.rows[o.rows[0]]
		w := Weight{
			Tensor:    first.Tensor,
			Scope:     first.Scope,
			Consumers: list(first.Consumers),
			Module:    first.Module,
			DType:     o.before.DType.String(),
			Shape:     list(o.before.Shape),
			Float:     pass.IsWeight(o.before),
			Methods:   []string{},
			Forms:     []string{},

			Bytes:        Change{o.before.Bytes(), o.extent.stored},
			RuntimeBytes: o.extent.held,
		}
		for _, j := range o.rows {
			w.Counted = w.Counted || c.rows[j].Counted
		}
		for _, j := range o.all {
			if r := c.rows[j]; r.Status == pass.Changed {
				w.Changed = true
				w.SharedWith = cmp.Or(w.SharedWith, r.SharedWith)
				w.Methods = append(w.Methods, r.Method)
				w.Forms = append(w.Forms, r.Form.Name)
			}
		}
		c.explain(&w, o)
		ws[i] = w
	}
	return ws
}

// list is a copy of xs that is not nil, so that JSON has no null.
func list[T any](xs []T) []T {
	if xs == nil {
		return []T{}
	}
	return slices.Clone(xs)
}

// A Coverage is the fraction of the counted weights' bytes that any step changed other than
// by rescaling.
type Coverage struct {
	ChangedBytes int64   `json:"changed_bytes"`
	CountedBytes int64   `json:"counted_bytes"`
	Fraction     float64 `json:"share"` // fraction; 0 where nothing is counted
}

func coverage(ws []Weight) Coverage {
	var c Coverage
	for _, w := range ws {
		if !w.Counted {
			continue
		}
		c.CountedBytes += w.Bytes.Before
		if slices.ContainsFunc(w.Forms, func(f string) bool { return f != pass.Rescaled.Name }) {
			c.ChangedBytes += w.Bytes.Before
		}
	}
	c.Fraction = round(c.fraction(), 6)
	return c
}

func (c Coverage) text() string {
	return size(c.ChangedBytes) + " of " + size(c.CountedBytes) + " of weights changed"
}

func (c Coverage) fraction() float64 {
	if c.CountedBytes == 0 {
		return 0
	}
	return float64(c.ChangedBytes) / float64(c.CountedBytes)
}
