package report

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// Compared reports whether r is a comparison of two files of unknown history, whose ledger has no methods.
func (r *Report) Compared() bool {
	return r.Recipe == nil && !slices.ContainsFunc(r.Ledger, func(row Row) bool { return row.Method != "" })
}

// Changes reports whether some row of the ledger is a change.
func (r *Report) Changes() bool { return slices.ContainsFunc(r.Ledger, Row.changed) }

func (r Row) changed() bool { return r.Status == pass.Changed.String() }

// accountedFor compares the weights of r with its ledger: both are lists of the same weights, which Build makes from one
// list of rows.
func (r *Report) accountedFor(add func(string, ...any)) {
	first := map[scoped]*Row{}
	for i := range r.Ledger {
		row := &r.Ledger[i]
		at := scoped{row.Scope, row.Tensor}
		if row.Before != nil && first[at] == nil {
			first[at] = row
		}
		if row.changed() != (row.After != nil) {
			add("ledger[%d]: tensor %q is %s, and what it became is recorded for changes alone", i, row.Tensor, row.Status)
		}
		if m := row.After; m != nil && m.Bytes != m.Payload+m.Scales+m.Indices {
			add("ledger[%d]: tensor %q has %d bytes, its parts have %d", i, row.Tensor, m.Bytes, m.Payload+m.Scales+m.Indices)
		}
	}
	weights := map[scoped]bool{}
	for i, w := range r.Weights {
		at := scoped{w.Scope, w.Tensor}
		weights[at] = true
		row := first[at]
		switch {
		case row == nil:
			add("weights[%d]: weight %q is in no row of the ledger", i, w.Tensor)
		case row.Before.DType != w.DType || !slices.Equal(row.Before.Shape, w.Shape) || row.Before.Bytes != w.Bytes.Before:
			add("weights[%d]: weight %q is %s of %d bytes, in the ledger %s of %d bytes", i, w.Tensor, shape(w.DType, w.Shape),
				w.Bytes.Before, shape(row.Before.DType, row.Before.Shape), row.Before.Bytes)
		case w.Changed != (len(w.Methods) > 0) || len(w.Methods) != len(w.Forms):
			add("weights[%d]: weight %q has %d methods and %d forms", i, w.Tensor, len(w.Methods), len(w.Forms))
		}
	}
	// Rows of later steps may be about what an earlier step made.
	for i, row := range r.Ledger {
		if row.Method != r.Ledger[0].Method {
			break
		}
		if at := (scoped{row.Scope, row.Tensor}); row.Before != nil && !weights[at] {
			add("ledger[%d]: tensor %q is not in the list of weights", i, row.Tensor)
		}
	}
	if got := modules(r.Weights); !equalLists(got, r.Modules) {
		add("the figures of %d modules are not those of the weights, which are in %d", len(r.Modules), len(got))
	}
}

func equalLists[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// countsAgree compares numbers of parts with those of the whole, and errors of one comparison with each other.
func (r *Report) countsAgree(add func(string, ...any)) {
	var sum Change
	for _, d := range r.Totals.DTypes {
		sum.Before, sum.After = sum.Before+d.Bytes.Before, sum.After+d.Bytes.After
	}
	if t := r.Totals.TensorBytes; t != sum {
		add("totals.tensor_bytes is %d → %d, its types have %d → %d bytes", t.Before, t.After, sum.Before, sum.After)
	}
	for _, t := range r.Teachers {
		if want := fileBytes(t.Side); t.FileBytes != want {
			add("the teacher %s has %d bytes, its files have %d", main(t.Side), t.FileBytes, want)
		}
	}
	if s := r.Search; s != nil && len(s.Trials) > 0 && s.Chosen >= len(s.Trials) {
		add("search.chosen is %d of %d trials", s.Chosen, len(s.Trials))
	}
	for i, w := range r.Weights {
		if why := w.Error.contradiction(); why != "" {
			add("weights[%d]: weight %q: %s", i, w.Tensor, why)
		}
	}
	for i, row := range r.Ledger {
		if why := row.Error.contradiction(); why != "" {
			add("ledger[%d]: tensor %q: %s", i, row.Tensor, why)
		}
	}
	if r.Verification != nil {
		for _, line := range r.Verification.Contradictions() {
			add("%s", line)
		}
	}
}

// contradiction is why the figures of e are not those of one comparison.
func (e *Error) contradiction() string {
	if e == nil {
		return ""
	}
	var largest *float64
	if e.Max != nil {
		x := float64(*e.Max)
		largest = &x
	}
	return (&verification.Errors{Exact: e.Exact, SQNR: e.SQNR, Cosine: e.Cosine, Max: largest}).Contradiction()
}

// InconsistenciesWith compares r with the graph of its result, one line for each difference: versions, sizes of
// constants, and the ledger, which has to account for each weight of m. A report that Build made of m has none.
func (r *Report) InconsistenciesWith(ctx context.Context, m Model) ([]string, error) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	is := side(m)
	if is.IRVersion != r.Result.IRVersion || !equalLists(is.Opsets, r.Result.Opsets) {
		add("its IR version and opsets are %d and %v, the report has %d and %v", is.IRVersion, is.Opsets, r.Result.IRVersion,
			r.Result.Opsets)
	}
	stored, _, err := sizes(ctx, m)
	if err != nil {
		return nil, err
	}
	reported := map[string]int64{}
	for _, d := range r.Totals.DTypes {
		if d.Bytes.After != 0 {
			reported[d.DType] = d.Bytes.After
		}
	}
	found := map[string]int64{}
	for t, n := range stored {
		if n != 0 {
			found[t.String()] = n
		}
	}
	if !maps.Equal(found, reported) {
		add("its constants have these bytes by type: %v; the report has %v", found, reported)
	}
	total, constants, err := parameters(ctx, m.IR)
	if err != nil {
		return nil, err
	}
	if total != r.Totals.Parameters.After {
		add("it has %d parameters, the report has %d", total, r.Totals.Parameters.After)
	}
	metadata := int64(0)
	if r.Totals.Metadata != nil {
		metadata = r.Totals.Metadata.After
	}
	if m.Metadata != metadata {
		add("it has %d bytes of doc strings and metadata, the report has %d", m.Metadata, metadata)
	}
	known := r.ledgerOf(m.IR, add)
	r.unaccounted(constants, known, add)
	return lines, nil
}

// ledgerOf compares the ledger with the constants of the result. It returns the names of those that it accounts for.
func (r *Report) ledgerOf(m *ir.Model, add func(string, ...any)) map[string]bool {
	// Rows have names of constants without their graphs, as a step may store a weight in another graph.
	named := map[string][]*ir.Tensor{}
	scopes := map[scoped]*ir.Tensor{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			named[v.Name] = append(named[v.Name], v.Const)
			scopes[scoped{pass.Scope(g), v.Name}] = v.Const
		}
	}
	known := map[string]bool{}
	counted := map[string]bool{}
	for i, row := range r.Ledger {
		known[row.Tensor] = known[row.Tensor] || row.Before != nil
		if row.After == nil {
			continue
		}
		bytes, alike := int64(0), false
		for _, name := range row.After.Tensors {
			known[name] = true
			if len(named[name]) == 0 {
				add("ledger[%d]: tensor %q is stored as %q, which the model does not have", i, row.Tensor, name)
				continue
			}
			for _, t := range named[name] {
				alike = alike || t.DType.String() == row.After.DType && slices.Equal(t.Shape, row.After.Shape)
			}
			if !counted[name] {
				counted[name] = true
				bytes += named[name][0].Bytes()
			}
		}
		if len(row.After.Tensors) == 0 {
			continue
		}
		if bytes > row.After.Bytes {
			add("ledger[%d]: tensor %q has %d bytes in the model, the report has %d", i, row.Tensor, bytes, row.After.Bytes)
		}
		if !alike && row.After.DType != "" && bytes == row.After.Bytes {
			add("ledger[%d]: tensor %q is not stored as %s in the model", i, row.Tensor, shape(row.After.DType, row.After.Shape))
		}
	}
	for i, w := range r.Weights {
		t := scopes[scoped{w.Scope, w.Tensor}]
		if t != nil && !w.Changed && (t.DType.String() != w.DType || !slices.Equal(t.Shape, w.Shape)) {
			add("weights[%d]: weight %q is unchanged %s, in the model %s", i, w.Tensor, shape(w.DType, w.Shape), t.Spec)
		}
	}
	return known
}

// unaccounted compares constants, which hold the parameters of the result, with the known ones.
func (r *Report) unaccounted(constants []*ir.Value, known map[string]bool, add func(string, ...any)) {
	// Weights of a result that resemble none of the source are in no row of a comparison.
	if r.Compared() {
		return
	}
	quantized, changes := map[ir.DType]int64{}, r.Changes()
	for _, v := range constants {
		switch t := v.Const; {
		case known[v.Name]:
		// A step may add a bias to a layer that it changes.
		case changes && len(t.Shape) == 1:
		case pass.IsWeight(t):
			add("weight %q (%s) is in no row of the ledger", v.Name, t.Spec)
		default:
			quantized[t.DType] += t.Bytes()
		}
	}
	// Weights that the source has quantized already are in no row.
	for _, d := range r.Totals.DTypes {
		for t, n := range quantized {
			if t.String() == d.DType && n > d.Bytes.Before {
				add("%d bytes of %s weights are in no row of the ledger, the source has %d", n, t, d.Bytes.Before)
			}
		}
	}
}
