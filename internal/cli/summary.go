package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// topReasons is the number of reasons in a summary; the report has all.
const topReasons = 3

// writeSummary writes the result of one model.
func writeSummary(w io.Writer, s Style, o Outcome) error {
	res, r := o.Result, o.Result.Report
	if _, err := fmt.Fprintln(w, s.bold(res.Model)+" → "+s.bold(target(res))); err != nil {
		return err
	}
	t := &textTable{indent: "  "}
	t.add("file size", change(s, r.Totals.FileBytes))
	t.add("runtime memory", change(s, r.Totals.RuntimeBytes))
	t.add("loading peak", change(s, r.Totals.RuntimePeak))
	if note := r.MemoryNote(); note != "" {
		t.add("", s.bad(note))
	}
	if m := r.Totals.Metadata; m != nil && 100*m.After >= r.Totals.FileBytes.After {
		t.add("metadata", fmt.Sprintf("%s of doc strings and metadata, %s of the file; --strip-metadata leaves them out", size(m.After), percent(float64(m.After)/float64(r.Totals.FileBytes.After))))
	}
	if text := r.Totals.Sparsity.Text(); text != "" {
		t.add("sparsity", text)
	}
	t.add("coverage", coverage(r))
	for i, l := range r.Removed {
		t.add(first(i, "layers"), report.RemovedText(l))
	}
	for i, text := range reasons(r) {
		t.add(first(i, "skipped"), text)
	}
	if text := stored(r, pass.DeadChannels); text != "" {
		t.add("dead channels", text)
	}
	if o.Alternative != "" {
		t.add("alternative", o.Alternative)
	}
	if i := slices.IndexFunc(r.Ledger, randomCalibration); i >= 0 {
		t.add("calibration", s.bad(r.Ledger[i].Reason.String()))
	}
	for i, row := range slices.DeleteFunc(slices.Clone(r.Ledger), func(row report.Row) bool { return row.Status != pass.Noted.String() || row.Reason.Code != pass.Inputs }) {
		t.add(first(i, "inputs"), s.bad(row.Method+": "+row.Reason.String()))
	}
	if i := slices.IndexFunc(r.Ledger, unscaled); i >= 0 {
		t.add("awq", s.bad(r.Ledger[i].Reason.String()))
	}
	for i, row := range slices.DeleteFunc(slices.Clone(r.Ledger), func(row report.Row) bool { return row.Reason.Code != pass.SlowerThanFloat }) {
		t.add(first(i, "speed"), s.bad(row.Method+": "+row.Reason.Detail))
	}
	for i, training := range r.Training {
		text := report.TrainingText(training)
		if !report.Improved(training) {
			text = s.bad(text)
		}
		t.add(first(i, "training result"), text)
	}
	if e := r.Environment; e != nil {
		for i, x := range e.Training {
			t.add(first(i, "training"), trainingTime(x, e))
			for k, text := range loadingTime(x) {
				t.add(first(k, "data loading"), text)
			}
		}
	}
	for i, m := range r.Training {
		t.add(first(i, "training memory"), budgeted(m.TrainingMemory, r.Environment))
		t.add("", planned(m.Memory))
		for _, text := range report.TrainingMemoryTexts(&m.TrainingMemory) {
			t.add("", text)
		}
	}
	for i, teacher := range r.Teachers {
		text := fmt.Sprintf("%s, %s, %s parameters", Escape(teacher.Files[0].Name), size(teacher.FileBytes), humanize.Comma(teacher.Parameters))
		if r.Reference != nil && r.Reference.Files[0] == teacher.Files[0] {
			text += "; the result is compared with it"
		}
		t.add(first(i, "teacher"), text)
	}
	if v := r.Verification; v != nil {
		t.add("verification", comparison(s, v))
		if caveat := v.Data.Caveat(); caveat != "" {
			t.add("", s.dim(caveat))
		}
		for _, note := range v.Remarks() {
			t.add("", s.dim(note))
		}
		if v.Accuracy != nil {
			t.add("accuracy", v.Accuracy.Text())
		}
		if v.Metric != nil {
			t.add("metric", Escape(v.Metric.Name)+" "+v.Metric.Text())
		}
	}
	gates(t, s, r.Gates, r.Verdict)
	if r.Copied != nil {
		t.add("copied", r.Copied.Text())
	}
	if len(res.Reports) > 0 {
		t.add("report", s.dim(together(res.Reports)))
	}
	return t.write(w)
}

// stored describes the weights with a note of some code, which was made of the written files; empty if there are none.
func stored(r *report.Report, code pass.Code) string {
	var of []string
	text := ""
	for _, w := range r.Weights {
		for _, n := range w.Notes {
			if n.Code == code {
				of, text = append(of, fmt.Sprintf("%s of %s", n.Detail, Escape(w.Tensor))), report.Reason{Code: code}.String()
			}
		}
	}
	if len(of) > topReasons {
		of = append(of[:topReasons:topReasons], fmt.Sprintf("%d more weights", len(of)-topReasons))
	}
	if text != "" {
		text = strings.Join(of, ", ") + ": " + text
	}
	return text
}

// first names a group of lines on its first one.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

func target(res *mcompress.Result) string {
	switch {
	case res.Output == "":
		return "(dry run, no file written)"
	case res.Rejected:
		return res.Output + " (rejected)"
	}
	return res.Output
}

func change(s Style, c report.Change) string {
	return fmt.Sprintf("%s → %s", size(c.Before), size(c.After)) + "  " + s.good(ratio(c))
}

// ratio is the compression ratio; of a larger result, by how much it is larger.
func ratio(c report.Change) string {
	switch {
	case c.After == 0 || c.Before == 0:
		return "–"
	case c.After > c.Before:
		larger := fmt.Sprintf("%.2f×", float64(c.After)/float64(c.Before))
		if larger == "1.00×" {
			return "same size"
		}
		return larger + " larger"
	}
	r := fmt.Sprintf("%.2f×", float64(c.Before)/float64(c.After))
	if r == "1.00×" {
		return "same size"
	}
	return r
}

func coverage(r *report.Report) string {
	changed, all := weights(r)
	return fmt.Sprintf("%s of the bytes of weights (%d of %d tensors)", percent(r.Coverage.Fraction), changed, all)
}

// weights counts the changed weights, and all of them: floats, and the quantized values that coverage counts.
func weights(r *report.Report) (changed, all int) {
	for _, w := range r.Weights {
		if !w.Float && !w.Counted {
			continue
		}
		all++
		if w.Changed {
			changed++
		}
	}
	return changed, all
}

// A reasonGroup is a reason that several weights have in common, without its details.
type reasonGroup struct {
	general report.Reason
	first   report.Reason // with its details
	count   int
	bytes   int64
}

// reasons are those of unchanged weights, the most bytes first.
func reasons(r *report.Report) []string {
	by := map[report.Reason]*reasonGroup{}
	for _, row := range r.Untouched() {
		general := row.Reason.General()
		if by[general] == nil {
			by[general] = &reasonGroup{general: general, first: row.Reason}
		}
		by[general].count++
		by[general].bytes += row.Before.Bytes
	}
	list := slices.SortedFunc(maps.Values(by), func(a, b *reasonGroup) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.general.String(), b.general.String()))
	})
	var lines []string
	for _, y := range list[:min(len(list), topReasons)] {
		text := y.general.String()
		if y.count == 1 {
			text = y.first.String()
		}
		lines = append(lines, fmt.Sprintf("%d × %s (%s)", y.count, text, size(y.bytes)))
	}
	if len(list) > topReasons {
		lines = append(lines, fmt.Sprintf("%d × other reasons, see the report", rest(list[topReasons:])))
	}
	return lines
}

func rest(list []*reasonGroup) int {
	n := 0
	for _, y := range list {
		n += y.count
	}
	return n
}

// randomCalibration reports whether row is the note of a method that had no calibration data.
func randomCalibration(row report.Row) bool { return row.Reason.Code == pass.RandomCalibration }

// unscaled reports whether row is the note of AWQ that it changed nothing.
func unscaled(row report.Row) bool { return row.Reason.Code == pass.AWQUnscaled }

// gates adds the verdict and each gate.
func gates(t *textTable, s Style, gs []report.Gate, v report.Verdict) {
	if v.Gates+v.First > 0 {
		t.add("verdict", verdictText(s, v))
	}
	for i, g := range gs {
		t.add(first(i, "gates"), gateText(s, g))
	}
}

func verdictText(s Style, v report.Verdict) string {
	text := v.Text()
	switch {
	case v.Passed == nil:
		return text
	case *v.Passed && v.Qualifier() != "":
		return s.warn(text)
	case *v.Passed:
		return s.good(text)
	}
	return s.bad(text)
}

// gateText is a gate with its result.
func gateText(s Style, g report.Gate) string {
	value, sign, bound := g.Shown()
	text := fmt.Sprintf("%s %s %s ", g.Name, sign, limit(g, g.Bound, bound))
	if g.Open {
		return text + "not evaluated: " + g.Reason
	}
	word := s.good("passed")
	if !g.Held {
		word = s.bad("failed")
	}
	if g.Value == nil {
		return text + word + ": " + g.Reason
	}
	return text + word + ": " + limit(g, *g.Value, value)
}

// limit is a value of a gate in the format of the summary, else in that of the report.
func limit(g report.Gate, v float64, shown string) string {
	switch g.Name {
	case "max-size":
		return size(int64(v))
	case "require-coverage":
		return percent(v)
	case "min-ratio", "max-latency-ratio":
		return fmt.Sprintf("%.4g×", v)
	}
	return shown
}

// together abbreviates paths that differ in their last extension.
func together(paths []string) string {
	base := strings.TrimSuffix(paths[0], filepath.Ext(paths[0]))
	var exts []string
	for _, p := range paths {
		ext, same := strings.CutPrefix(p, base+".")
		if !same {
			return strings.Join(paths, " ")
		}
		exts = append(exts, ext)
	}
	if len(exts) == 1 {
		return paths[0]
	}
	return base + ".{" + strings.Join(exts, ",") + "}"
}

func size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func percent(fraction float64) string { return fmt.Sprintf("%.1f %%", 100*fraction) }
