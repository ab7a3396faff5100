package report

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Row is a change of one step to one tensor, or the reason for none.
type Row struct {
	Method     string   `json:"method"`
	Tensor     string   `json:"tensor"`
	Scope      string   `json:"scope"`
	Consumers  []string `json:"consumers"`
	Module     string   `json:"module,omitempty"` // path of the module that the tensor is part of
	Status     string   `json:"status"`
	Reason     Reason   `json:"reason,omitzero"` // why it was skipped, or a note
	Notes      []Reason `json:"notes,omitempty"` // notes about a change
	Form       string   `json:"form,omitempty"`
	Domain     string   `json:"domain,omitempty"` // of the form's operators, if it is not ONNX's own
	SharedWith string   `json:"shared_with,omitempty"`
	Superseded bool     `json:"superseded,omitempty"` // a later step replaced the result of this one
	Before     *Stored  `json:"before,omitempty"`
	After      *Made    `json:"after,omitempty"`
	Figures
}

// A Stored is a tensor before a step.
type Stored struct {
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
}

// A Made is the result of a step for a tensor: the type and shape of the first
// payload, and the bytes of all parts that no earlier row of the ledger counts.
type Made struct {
	DType        string  `json:"dtype"`
	Shape        []int64 `json:"shape"`
	Bytes        int64   `json:"bytes"`
	Payload      int64   `json:"payload_bytes"`
	Scales       int64   `json:"scales_bytes"`
	Indices      int64   `json:"indices_bytes"`
	RuntimeBytes int64   `json:"runtime_bytes"`
	// names of the constants of the result that it is; absent where a later step replaced them, and for those in attributes
	Tensors []string `json:"tensors,omitempty"`
}

// ledger is the rows in their order, without measured figures.
func (c *chain) ledger() []Row {
	rows := make([]Row, len(c.rows))
	seen := map[*ir.Tensor]bool{}
	for i, r := range c.rows {
		rows[i] = Row{
			Method:     r.Method,
			Tensor:     r.Tensor,
			Scope:      r.Scope,
			Consumers:  list(r.Consumers),
			Module:     r.Module,
			Status:     r.Status.String(),
			Reason:     reasonOf(r.Reason),
			Form:       r.Form.Name,
			Domain:     r.Form.Domain,
			SharedWith: r.SharedWith,
			Superseded: c.superseded(i),
		}
		for _, n := range r.Notes {
			rows[i].Notes = append(rows[i].Notes, reasonOf(n))
		}
		if r.Before != nil {
			rows[i].Before = &Stored{r.Before.DType.String(), list(r.Before.Shape), r.Before.Bytes()}
		}
		if r.Status == pass.Changed {
			rows[i].After = c.made(i, seen)
		}
	}
	return rows
}

func (c *chain) made(i int, seen map[*ir.Tensor]bool) *Made {
	m := &Made{Shape: []int64{}}
	by := map[pass.Role]*int64{pass.Payload: &m.Payload, pass.Scales: &m.Scales, pass.Indices: &m.Indices}
	for _, p := range c.rows[i].After {
		t := c.opened(p, i)
		if p.Role == pass.Payload && m.DType == "" {
			m.DType, m.Shape = t.DType.String(), list(t.Shape)
		}
		if c.taker(p.Tensor, i) < 0 && c.stored.find(p) != nil {
			m.Tensors = append(m.Tensors, p.Value.Name)
		}
		// A scale or payload that several weights share counts for the first.
		if !seen[t] {
			seen[t] = true
			*by[p.Role] += t.Bytes()
			m.RuntimeBytes += c.held(i, p, t)
		}
	}
	m.Bytes = m.Payload + m.Scales + m.Indices
	if c.rows[i].Form.Dense && m.Bytes > 0 {
		m.RuntimeBytes = c.dense(i)
	}
	return m
}

// Operators is the form, with the domain of its operators if it is not ONNX's own.
func (r Row) Operators() string {
	if r.Domain == "" {
		return r.Form
	}
	return r.Form + " (" + r.Domain + ")"
}
