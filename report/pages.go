package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// maxRows is the maximum number of rows of a table. The JSON form has all.
const maxRows = 1000

// rows is the number of rows of a table of n.
func rows(n int) int { return min(n, maxRows) }

// omitted is the note of a table on the rest of n rows; empty if there is none.
func omitted(n int) string {
	if n <= maxRows {
		return ""
	}
	return count(int64(n-maxRows)) + " more are in the JSON report"
}

// smaller is the ratio of two sizes in words.
func smaller(c Change) string {
	switch {
	case c.After == 0 || c.Before == 0:
		return "unknown"
	case c.After == c.Before:
		return "unchanged"
	case !c.differs():
		return "same size"
	case c.After < c.Before:
		return times(float64(c.Before)/float64(c.After)) + " smaller"
	}
	return times(float64(c.After)/float64(c.Before)) + " larger"
}

// differs reports whether the ratio differs from 1.00 in two decimals.
func (c Change) differs() bool {
	ratio := float64(max(c.Before, c.After)) / float64(min(c.Before, c.After))
	return ratio >= 1.005
}

// worst is the changed weight with the lowest SQNR; nil if none was measured.
func (r *Report) worst() *Weight {
	var worst *Weight
	for i := range r.Weights {
		w := &r.Weights[i]
		if w.Error != nil && (worst == nil || w.Error.worse(worst.Error)) {
			worst = w
		}
	}
	return worst
}

// worse puts errors that are undefined before any number, and exact ones last.
func (e *Error) worse(f *Error) bool {
	return e.rank() < f.rank() || e.rank() == f.rank() && e.rank() == 1 && *e.SQNR < *f.SQNR
}

func (e *Error) rank() int {
	switch {
	case e.Exact:
		return 2
	case e.SQNR == nil:
		return 0
	}
	return 1
}

func (r *Report) changed() []*Weight {
	return slices.DeleteFunc(largest(r.Weights), func(w *Weight) bool { return !w.Changed })
}

// A reason is why weights were left alone, and which.
type reason struct {
	Text    string
	Bytes   int64
	Weights []*Weight
}

// reasons groups the unchanged weights by reason without its details, the most bytes first. The reason of a single
// weight has its details.
func (r *Report) reasons() []reason {
	var rs []reason
	index := map[Reason]int{}
	for _, w := range largest(r.Weights) {
		if w.Changed {
			continue
		}
		general := w.Reason.General()
		i, found := index[general]
		if !found {
			text := general.String()
			if i = slices.IndexFunc(rs, func(x reason) bool { return x.Text == text }); i < 0 {
				i = len(rs)
				rs = append(rs, reason{Text: text})
			}
			index[general] = i
		}
		rs[i].Weights = append(rs[i].Weights, w)
		rs[i].Bytes += w.Bytes.Before
	}
	for i, x := range rs {
		if len(x.Weights) == 1 {
			rs[i].Text = x.Weights[0].Reason.String()
		}
	}
	slices.SortStableFunc(rs, func(a, b reason) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return rs
}

// A remark is what a step notes about a value, the model, or several nodes of one operator.
type remark struct {
	Method, Tensor string
	Reason         Reason
	Nodes          int
}

func (n remark) Text() string {
	if n.Nodes > 1 {
		return fmt.Sprintf("%d × %s", n.Nodes, n.Reason.General())
	}
	return n.Reason.String()
}

// notes are the rows that are not about a change of a weight. Those about nodes of one operator, for one reason, are
// one remark.
func (r *Report) notes() []remark {
	type kind struct {
		method string
		reason Reason
	}
	var notes []remark
	index := map[kind]int{}
	for _, x := range r.Ledger {
		if x.Status != pass.Noted.String() {
			continue
		}
		same := kind{x.Method, x.Reason.General()}
		i, found := index[same]
		if x.Tensor != "" || x.Reason.Operator == "" || !found {
			i = len(notes)
			notes = append(notes, remark{Method: x.Method, Tensor: x.Tensor, Reason: x.Reason})
			if x.Tensor == "" {
				index[same] = i
			}
		}
		notes[i].Nodes++
	}
	return notes
}

// steps are the rows of a ledger in which some weight has more than one, else nil: then the
// weights have the same content.
func (r *Report) steps() []*Row {
	var rows []*Row
	for i := range r.Ledger {
		if x := &r.Ledger[i]; x.Before != nil && x.After != nil {
			rows = append(rows, x)
		}
	}
	changed := 0
	for i := range r.Weights {
		if r.Weights[i].Changed {
			changed++
		}
	}
	if len(rows) <= changed {
		return nil
	}
	return rows
}

// title names both models by their main files.
func (r *Report) title() string {
	return main(r.before()) + " → " + main(r.Result)
}

func main(s Side) string {
	if len(s.Files) == 0 {
		return "model"
	}
	return s.Files[0].Name
}

// named is the name of w with its module.
func (w Weight) named() string { return pass.Named(w.Tensor, w.Module) }

// kept is n bytes of w, or a note that they count for another weight.
func (w Weight) kept(n int64) string {
	if n == 0 && w.SharedWith != "" {
		return "shared"
	}
	return size(n)
}
