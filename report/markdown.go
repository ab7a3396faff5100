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
	_, err := m.WriteTo(w)
	return err
}

type markdown struct{ bytes.Buffer }

// line writes a paragraph of one line.
func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(m, format+"\n\n", args...)
}

// table writes rows below a head; a column whose head ends in a colon is aligned right.
func (m *markdown) table(head []string, rows [][]string) {
	rule := make([]string, len(head))
	names := make([]string, len(head))
	for i, h := range head {
		name, right := strings.CutSuffix(h, ":")
		names[i], rule[i] = name, "---"
		if right {
			rule[i] = "---:"
		}
	}
	for _, cells := range append([][]string{names, rule}, rows...) {
		fmt.Fprintf(m, "| %s |\n", strings.Join(cells, " | "))
	}
	m.WriteByte('\n')
}

// folded writes a table whose rows from the given one on are folded.
func (m *markdown) folded(head []string, rows [][]string, open int) {
	n := min(open, len(rows))
	if n > 0 {
		m.table(head, rows[:n])
	}
	if rest := rows[n:]; len(rest) > 0 {
		more := " rows"
		if n > 0 {
			more = " more"
		}
		m.line("<details><summary>%s%s</summary>", count(int64(len(rest))), more)
		m.table(head, rest)
		m.line("</details>")
	}
}

func (m *markdown) summary(r *Report) {
	t := r.Totals
	rows := [][]string{
		{"File size", size(t.FileBytes.Before), bold(size(t.FileBytes.After)), smaller(t.FileBytes)},
		{"Runtime memory", size(t.RuntimeBytes.Before), bold(size(t.RuntimeBytes.After)),
			smaller(t.RuntimeBytes) + ", in " + prose(t.Runtime)},
		{"Its peak while loading", size(t.RuntimePeak.Before), bold(size(t.RuntimePeak.After)), smaller(t.RuntimePeak)},
		{"Parameters", count(t.Parameters.Before), bold(count(t.Parameters.After)), ""},
		{"Coverage", "", bold(percent(r.Coverage.Fraction)), r.Coverage.text()},
	}
	if e := t.Engine; e != nil {
		rows = slices.Insert(rows, 3, []string{"Memory of weights", size(e.Before), bold(size(e.After)),
			smaller(*e) + ", in " + engineName})
	}
	if s := t.Sparsity; s.prunes() {
		rows = append(rows, []string{"Sparsity of layers", percent(s.Prunable.Before), bold(percent(s.Prunable.After)),
			percent(s.All.After) + " of all weights are zero"})
	}
	if m := t.Metadata; m != nil {
		rows = append(rows, []string{"Doc strings and metadata", size(m.Before), size(m.After), ""})
	}
	if w := r.worst(); w != nil {
		rows = append(rows, []string{"Lowest SQNR of a weight", "", bold(sqnr(w.Error)), inScope(w.Scope, w.named())})
	}
	m.table([]string{"", "before:", "after:", ""}, rows)
	if note := r.MemoryNote(); note != "" {
		m.line("%s.", prose(note))
	}
}

func bold(s string) string { return "**" + s + "**" }

func (m *markdown) verdict(v Verdict) {
	if v.Gates+v.First > 0 {
		m.line("**Verdict: %s.** Evidence: %s.", v.Text(), prose(v.Evidence))
	}
}

func (m *markdown) gates(gs []Gate) {
	for _, g := range gs {
		v, relation, bound := g.Shown()
		fmt.Fprintf(m, "- %s %s: %s (gate: %s %s)\n", g.mark(), code(g.Name), prose(v), relation, bound)
	}
	if len(gs) > 0 {
		m.WriteByte('\n')
	}
}

func (m *markdown) changed(r *Report) {
	var cells [][]string
	changed := r.changed()
	for _, w := range changed[:rows(len(changed))] {
		cells = append(cells, []string{
			inScope(w.Scope, w.named()), shape(w.DType, w.Shape), prose(strings.Join(w.Forms, " → ")),
			size(w.Bytes.Before), w.kept(w.Bytes.After), w.kept(w.RuntimeBytes), sparsity(w.Sparsity), sqnr(w.Error),
			cosine(w.Error), maxError(w.Error),
		})
	}
	if len(cells) == 0 {
		m.line("No weight was changed.")
		return
	}
	m.line("### Changed weights (%d)", len(changed))
	m.folded([]string{"weight", "type", "stored as", "before:", "after:", "runtime:", "zeros:", "SQNR:", "cosine:",
		"max abs error:"}, cells, shown)
	m.omitted(len(changed))
}

func (m *markdown) reasons(rs []reason) {
	if len(rs) == 0 {
		return
	}
	n := 0
	var cells [][]string
	for _, x := range rs {
		n += len(x.Weights)
		cells = append(cells, []string{prose(x.Text), fmt.Sprint(len(x.Weights)), size(x.Bytes), some(x.Weights)})
	}
	m.line("### Unchanged weights (%d)", n)
	m.folded([]string{"reason", "weights:", "bytes:", "tensors"}, cells[:rows(len(cells))], shown)
	m.omitted(len(cells))
}

// omitted notes the rest of a table of n rows.
func (m *markdown) omitted(n int) {
	if text := omitted(n); text != "" {
		m.line("_%s._", text)
	}
}

// some names the first of ws.
func some(ws []*Weight) string {
	var names []string
	for _, w := range ws[:min(3, len(ws))] {
		names = append(names, inScope(w.Scope, w.named()))
	}
	if len(ws) > len(names) {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func (m *markdown) steps(ledger []*Row) {
	if len(ledger) == 0 {
		return
	}
	var cells [][]string
	for _, x := range ledger[:rows(len(ledger))] {
		cells = append(cells, []string{
			prose(x.Method), inScope(x.Scope, x.Tensor), prose(x.Operators()), shape(x.After.DType, x.After.Shape),
			size(x.Before.Bytes), size(x.After.Payload), size(x.After.Scales), size(x.After.Indices), sparsity(x.Sparsity),
			sqnr(x.Error),
		})
	}
	m.line("### Steps, each compared with the result of the previous one")
	m.folded([]string{"method", "tensor", "form", "stored", "before:", "payload:", "scales:", "indices:", "zeros:",
		"SQNR:"}, cells, 0)
	m.omitted(len(ledger))
}

func (m *markdown) notes(all []remark) {
	for _, x := range all[:rows(len(all))] {
		fmt.Fprintf(m, "- %s\n", prose(strings.TrimSpace(x.Tensor+" "+x.Text())))
	}
	if len(all) > 0 {
		m.WriteByte('\n')
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
	var rows [][]string
	for _, o := range r.provenance() {
		name := prose(o.Name)
		if strings.HasSuffix(o.Amount, " bytes") {
			name = code(o.Name)
		}
		rows = append(rows, []string{strings.ToLower(o.What), name, o.Amount, digest(o.SHA256)})
	}
	m.table([]string{"", "", ":", "SHA-256"}, rows)
	if r.Recipe != nil {
		fmt.Fprintf(m, "<details><summary>Recipe with the values of all options</summary>\n\n%s\n</details>\n",
			fenced("yaml", r.Recipe.Text))
	}
}

func digest(sum string) string {
	if sum == "" {
		return ""
	}
	return code(sum)
}
