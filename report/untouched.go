package report

import "github.com/mcompress/mcompress/pass"

// Untouched are the first rows of unchanged weights.
func (r *Report) Untouched() []*Row {
	type weight struct{ scope, tensor string }
	done := make(map[weight]bool, len(r.Weights))
	for i := range r.Weights {
		w := &r.Weights[i]
		done[weight{w.Scope, w.Tensor}] = w.Changed
	}
	var rows []*Row
	for i := range r.Ledger {
		row := &r.Ledger[i]
		at := weight{row.Scope, row.Tensor}
		if row.Status == pass.Skipped.String() && row.Before != nil && !done[at] {
			done[at] = true
			rows = append(rows, row)
		}
	}
	return rows
}
