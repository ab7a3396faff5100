package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The names of the files of an index.
const (
	IndexJSON = "index.json"
	IndexHTML = "index.html"
)

// The status of a model of a list.
const (
	Written  = "written"
	Planned  = "planned"    // dry run
	UpToDate = "up-to-date" // see --if-changed
	Rejected = "rejected"   // by a gate
	Failed   = "failed"
	Missing  = "missing"  // there is neither a report nor an error
	Invalid  = "invalid"  // the report is not valid, or was changed after it was written
	Unlisted = "unlisted" // a report of no model of the list
)

// An Index is the headline figures of the models of a list, the worst first. Its JSON form is described by
// docs/index-schema.json.
type Index struct {
	Totals  IndexTotals
	Entries []Entry
}

// IndexTotals are figures of all results of an index.
type IndexTotals struct {
	Counts
	Ratio        float64 `json:"ratio"` // bytes before by bytes after; 0 without results
	RuntimeBytes Change  `json:"runtime_bytes"`
	RandomInputs int     `json:"random_inputs"` // results that were compared with their sources on random inputs only
	NotRun       int     `json:"not_run"`       // results that were not compared with their sources
}

// Counts are the numbers of models by their result, and the file sizes of those with a result.
type Counts struct {
	Models      int   `json:"models"`
	Written     int   `json:"written"`
	Planned     int   `json:"planned,omitempty"`
	UpToDate    int   `json:"up_to_date"`
	Rejected    int   `json:"rejected"`
	Failed      int   `json:"failed"`
	Missing     int   `json:"missing,omitempty"`
	Invalid     int   `json:"invalid,omitempty"`
	Unlisted    int   `json:"unlisted,omitempty"` // not among the models
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}

// Add counts a model, of which sizes is nil if it has no result.
func (c *Counts) Add(result string, sizes *Change) {
	if result == Unlisted {
		c.Unlisted++
		return
	}
	c.Models++
	*map[string]*int{
		Written: &c.Written, Planned: &c.Planned, UpToDate: &c.UpToDate, Rejected: &c.Rejected, Failed: &c.Failed,
		Missing: &c.Missing, Invalid: &c.Invalid,
	}[result]++
	if sizes != nil {
		c.BytesBefore += sizes.Before
		c.BytesAfter += sizes.After
	}
}

// An Entry is a model of an index with the figures of its report, or why it has none.
type Entry struct {
	Model    string `json:"model,omitempty"` // as the list has it; absent without a list
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code,omitempty"` // of a model that failed
	Error    string `json:"error,omitempty"`
	Report   string `json:"report,omitempty"` // path of the JSON form, from the folder of the index
	Page     string `json:"page,omitempty"`   // that of the HTML form; absent where it is not there
	Failures []Gate `json:"failed_gates,omitempty"`
	*Headline
}

// NewEntry is the entry of a report at a path.
func NewEntry(model, status, path string, r *Report) Entry {
	h := headline(r)
	e := Entry{Model: model, Status: status, Report: path, Headline: &h}
	for _, g := range r.Gates {
		if g.class() == "failed" {
			e.Failures = append(e.Failures, g)
		}
	}
	return e
}

// Sort orders the entries, the worst first, and sums them up.
func (x *Index) Sort() {
	slices.SortStableFunc(x.Entries, Entry.worse)
	x.Totals = IndexTotals{}
	t := &x.Totals
	for _, e := range x.Entries {
		if !e.counts() {
			t.Add(e.Status, nil)
			continue
		}
		t.Add(e.Status, &e.FileBytes)
		t.RuntimeBytes.Before += e.RuntimeBytes.Before
		t.RuntimeBytes.After += e.RuntimeBytes.After
		switch {
		case e.Data == nil:
			t.NotRun++
		case e.Data.Caveat() != "":
			t.RandomInputs++
		}
	}
	t.Ratio = round(ratio(Change{t.BytesBefore, t.BytesAfter}), 4)
}

// counts reports whether the figures of e are among those of the whole list.
func (e Entry) counts() bool { return e.Headline != nil && e.Status != Unlisted }

// rank orders entries by their results.
func (e Entry) rank() int {
	switch e.Status {
	case Invalid, Failed:
		return 0
	case Missing:
		return 1
	case Rejected:
		return 2
	case Unlisted:
		return 4
	}
	return 3
}

// quality orders entries of one rank: by the output SQNR, then those that were not run, then by the agreement.
func (e Entry) quality() (sqnr, agreement float64) {
	sqnr, agreement = math.Inf(1), 1
	switch {
	case e.Headline == nil:
		return sqnr, agreement
	case e.Output == nil:
		return sqnr, -1
	case e.Output.Errors != nil && !math.IsNaN(e.Output.Errors.DB()):
		sqnr = e.Output.Errors.DB()
	}
	if e.Output.Agreement != nil {
		agreement = *e.Output.Agreement
	}
	return sqnr, agreement
}

// worse orders entries, the worst first.
func (e Entry) worse(f Entry) int {
	a, b := e.quality()
	c, d := f.quality()
	return cmp.Or(
		cmp.Compare(e.rank(), f.rank()),
		cmp.Compare(a, c),
		cmp.Compare(b, d),
		// Equal lists have equal indexes, in whatever order their reports were read.
		cmp.Compare(e.name(), f.name()),
	)
}

// name is that of the model, or of the result without a list.
func (e Entry) name() string { return cmp.Or(e.Model, strings.TrimSuffix(e.Report, JSONSuffix)) }

// JSON writes x with one line for each entry.
func (x *Index) JSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	fmt.Fprint(out, `{"schema_version":1,"totals":`)
	err := encoder.Encode(x.Totals)
	separator := `,"entries":[` + "\n"
	for _, e := range x.Entries {
		fmt.Fprint(out, separator)
		err = errors.Join(err, encoder.Encode(e))
		separator = ","
	}
	if len(x.Entries) == 0 {
		fmt.Fprint(out, separator)
	}
	fmt.Fprintln(out, "]}")
	return errors.Join(err, out.Flush())
}
