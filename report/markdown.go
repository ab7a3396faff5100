package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// shown is the number of visible rows of a table; the rest is folded.
const shown = 10

// Markdown writes r for pull requests and model cards, in GitHub's dialect. The
// environment is left out, so that equal runs give equal text.
func (r *Report) Markdown(w io.Writer) error {
	m := &markdown{}
	m.line("## %s", prose(r.title()))
	if r.Result.Planned {
		m.line("_Dry run: no file was written._")
	}
	m.summary(r)
	m.verdict(r.Verdict)
	m.gates(r.Gates)
	m.verification(r.Verification)
	m.copied(r.Copied)
	m.removed(r.Removed)
	m.config(r.Config)
	m.training(r.Training)
	m.search(r.Search)
	m.target(r.Target)
	m.modules(r.Modules)
	m.changed(r)
	m.reasons(r.reasons())
	m.steps(r.steps())
	m.notes(r.notes())
	m.hints(r.Hints)
	m.provenance(r)
	return m.writeTo(w)
}

// A markdown is a document in GitHub's dialect. Its methods accept inline and constants, not text of a report.
type markdown struct{ text bytes.Buffer }

func (m *markdown) writeTo(w io.Writer) error {
	_, err := m.text.WriteTo(w)
	return err
}

func (m *markdown) write(format inline, args []inline, end string) {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a
	}
	fmt.Fprintf(&m.text, string(format)+end, all...)
}

// line writes a paragraph of one line.
func (m *markdown) line(format inline, args ...inline) { m.write(format, args, "\n\n") }

// item writes an element of a list, which close ends.
func (m *markdown) item(format inline, args ...inline) { m.write("- "+format, args, "\n") }

func (m *markdown) close() { m.text.WriteByte('\n') }

// block writes text as code.
func (m *markdown) block(language, text string) { m.text.WriteString(fenced(language, text) + "\n") }

// table writes rows below a head; a column whose head ends in a colon is aligned right.
func (m *markdown) table(head []inline, rows [][]inline) {
	rule := make([]inline, len(head))
	names := make([]inline, len(head))
	for i, h := range head {
		name, right := strings.CutSuffix(string(h), ":")
		names[i], rule[i] = inline(name), "---"
		if right {
			rule[i] = "---:"
		}
	}
	for _, cells := range append([][]inline{names, rule}, rows...) {
		m.write("| %s |", []inline{joinInline(cells, " | ")}, "\n")
	}
	m.close()
}

// folded writes a table whose rows from the given one on are folded.
func (m *markdown) folded(head []inline, rows [][]inline, open int) {
	n := min(open, len(rows))
	if n > 0 {
		m.table(head, rows[:n])
	}
	if rest := rows[n:]; len(rest) > 0 {
		more := inline(" rows")
		if n > 0 {
			more = " more"
		}
		m.line("<details><summary>%s%s</summary>", numberOf(len(rest)), more)
		m.table(head, rest)
		m.line("</details>")
	}
}

func (m *markdown) summary(r *Report) {
	t := r.Totals
	sizes := func(name inline, c Change, remark string) []inline {
		return []inline{name, prose(size(c.Before)), bold(size(c.After)), prose(smaller(c) + remark)}
	}
	rows := [][]inline{
		sizes("File size", t.FileBytes, ""),
		sizes("Runtime memory", t.RuntimeBytes, ", in "+t.Runtime),
		sizes("Its peak while loading", t.RuntimePeak, ""),
		{"Parameters", prose(count(t.Parameters.Before)), bold(count(t.Parameters.After)), ""},
		{"Coverage", "", bold(percent(r.Coverage.Fraction)), prose(r.Coverage.text())},
	}
	if e := t.Engine; e != nil {
		rows = slices.Insert(rows, 3, sizes("Memory of weights", *e, ", in "+engineName))
	}
	if s := t.Sparsity; s.prunes() {
		rows = append(rows, []inline{"Sparsity of layers", prose(percent(s.Prunable.Before)),
			bold(percent(s.Prunable.After)), prose(percent(s.All.After) + " of all weights are zero")})
	}
	if m := t.Metadata; m != nil {
		rows = append(rows, []inline{"Doc strings and metadata", prose(size(m.Before)), prose(size(m.After)), ""})
	}
	if w := r.worst(); w != nil {
		rows = append(rows, []inline{"Lowest SQNR of a weight", "", bold(sqnr(w.Error)), inScope(w.Scope, w.named())})
	}
	m.table([]inline{"", "before:", "after:", ""}, rows)
	if note := r.MemoryNote(); note != "" {
		m.line("%s.", prose(note))
	}
}

func bold(s string) inline { return "**" + prose(s) + "**" }

// numberOf is a number of things.
func numberOf(n int) inline { return prose(count(int64(n))) }

// cells are the texts of a row.
func cells(texts ...string) []inline {
	row := make([]inline, len(texts))
	for i, s := range texts {
		row[i] = prose(s)
	}
	return row
}

func joinInline(parts []inline, separator inline) (all inline) {
	for i, p := range parts {
		if i > 0 {
			all += separator
		}
		all += p
	}
	return all
}

func (m *markdown) verdict(v Verdict) {
	if v.Gates+v.First > 0 {
		m.line("**Verdict: %s.** Evidence: %s.", prose(v.Text()), prose(v.Evidence))
	}
}

func (m *markdown) gates(gs []Gate) {
	for _, g := range gs {
		v, relation, bound := g.Shown()
		m.item("%s %s: %s (gate: %s %s)", prose(g.mark()), code(g.Name), prose(v), prose(relation), prose(bound))
	}
	if len(gs) > 0 {
		m.close()
	}
}

func (m *markdown) changed(r *Report) {
	var table [][]inline
	changed := r.changed()
	for _, w := range changed[:rows(len(changed))] {
		table = append(table, append([]inline{inScope(w.Scope, w.named())}, cells(
			shape(w.DType, w.Shape), strings.Join(w.Forms, " → "), size(w.Bytes.Before), w.kept(w.Bytes.After),
			w.kept(w.RuntimeBytes), sparsity(w.Sparsity), sqnr(w.Error), cosine(w.Error), maxError(w.Error),
		)...))
	}
	if len(table) == 0 {
		m.line("No weight was changed.")
		return
	}
	m.line("### Changed weights (%s)", numberOf(len(changed)))
	m.folded([]inline{"weight", "type", "stored as", "before:", "after:", "runtime:", "zeros:", "SQNR:", "cosine:",
		"max abs error:"}, table, shown)
	m.omitted(len(changed))
}

func (m *markdown) reasons(rs []reason) {
	if len(rs) == 0 {
		return
	}
	n := 0
	var table [][]inline
	for _, x := range rs {
		n += len(x.Weights)
		table = append(table, append(cells(x.Text, fmt.Sprint(len(x.Weights)), size(x.Bytes)), some(x.Weights)))
	}
	m.line("### Unchanged weights (%s)", numberOf(n))
	m.folded([]inline{"reason", "weights:", "bytes:", "tensors"}, table[:rows(len(table))], shown)
	m.omitted(len(table))
}

// omitted notes the rest of a table of n rows.
func (m *markdown) omitted(n int) {
	if text := omitted(n); text != "" {
		m.line("_%s._", prose(text))
	}
}

// some names the first of ws.
func some(ws []*Weight) inline {
	var names []inline
	for _, w := range ws[:min(3, len(ws))] {
		names = append(names, inScope(w.Scope, w.named()))
	}
	if len(ws) > len(names) {
		names = append(names, "…")
	}
	return joinInline(names, ", ")
}

func (m *markdown) steps(ledger []*Row) {
	if len(ledger) == 0 {
		return
	}
	var table [][]inline
	for _, x := range ledger[:rows(len(ledger))] {
		table = append(table, append([]inline{prose(x.Method), inScope(x.Scope, x.Tensor)}, cells(
			x.Operators(), shape(x.After.DType, x.After.Shape), size(x.Before.Bytes), size(x.After.Payload),
			size(x.After.Scales), size(x.After.Indices), sparsity(x.Sparsity), sqnr(x.Error),
		)...))
	}
	m.line("### Steps, each compared with the result of the previous one")
	m.folded([]inline{"method", "tensor", "form", "stored", "before:", "payload:", "scales:", "indices:", "zeros:",
		"SQNR:"}, table, 0)
	m.omitted(len(ledger))
}

func (m *markdown) notes(all []remark) {
	for _, x := range all[:rows(len(all))] {
		m.item("%s", prose(strings.TrimSpace(x.Tensor+" "+x.Text())))
	}
	if len(all) > 0 {
		m.close()
	}
	m.omitted(len(all))
}

func (m *markdown) hints(hs []string) {
	for _, h := range hs {
		m.line("> **Note:** %s.", prose(h))
	}
}

func (m *markdown) provenance(r *Report) {
	m.line("### Provenance")
	var rows [][]inline
	for _, o := range r.provenance() {
		name := prose(o.Name)
		if strings.HasSuffix(o.Amount, " bytes") {
			name = code(o.Name)
		}
		rows = append(rows, []inline{prose(strings.ToLower(o.What)), name, prose(o.Amount), digest(o.SHA256)})
	}
	m.table([]inline{"", "", ":", "SHA-256"}, rows)
	if r.Recipe != nil {
		m.line("<details><summary>Recipe with the values of all options</summary>")
		m.block("yaml", r.Recipe.Text)
		m.write("</details>", nil, "\n")
	}
}

func digest(sum string) inline {
	if sum == "" {
		return ""
	}
	return code(sum)
}
