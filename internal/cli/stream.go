package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Stream prints the outcomes of a list of models while it is compressed: as lines of text, or as lines of JSON.
type Stream struct {
	w     io.Writer
	style Style
	json  bool

	mu      sync.Mutex // progress comes from several goroutines
	last    time.Time  // of a line, or of the first progress of a model
	summary summary
}

// The kinds of lines of JSON.
const (
	startEvent    = "start"
	progressEvent = "progress"
	modelEvent    = "model"
	summaryEvent  = "summary"
)

// progressInterval is the time between two lines about progress.
const progressInterval = 5 * time.Second

// modelFacts is what a line of JSON has of a model.
type modelFacts struct {
	Event    string         `json:"event"`
	Model    string         `json:"model"`
	Result   string         `json:"result"`
	ExitCode int            `json:"exit_code"`
	Error    string         `json:"error,omitempty"`
	Output   string         `json:"output,omitempty"`
	Bytes    *report.Change `json:"file_bytes,omitempty"`
	Verdict  string         `json:"verdict,omitempty"`
	Reports  []string       `json:"reports,omitempty"`
}

// progressFacts is what a line of JSON has of a model that is compressed: bytes written, or steps of training.
type progressFacts struct {
	Event string `json:"event"`
	Model string `json:"model"`
	Unit  string `json:"unit"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// summary is the last line.
type summary struct {
	Event string `json:"event"`
	report.Counts
	ExitCode int `json:"exit_code"`
}

// startFacts is the first line.
type startFacts struct {
	Event string              `json:"event"`
	Shard mcompress.Selection `json:"shard"`
}

// NewStream begins a stream with the models of this run.
func NewStream(w io.Writer, s Style, asJSON bool, selected mcompress.Selection) (*Stream, error) {
	st := &Stream{w: w, style: s, json: asJSON}
	if !asJSON {
		return st, nil
	}
	return st, st.line(startFacts{startEvent, selected})
}

func (s *Stream) line(facts any) error {
	enc := json.NewEncoder(s.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(facts)
}

// Written returns a function that prints lines about the bytes of a model that are written.
func (s *Stream) Written(model string) func(done, total int64) {
	return func(done, total int64) { s.progress(progressFacts{progressEvent, model, "bytes", done, total}) }
}

// Trained returns a function that prints lines about the steps of training of a model.
func (s *Stream) Trained(model string) func(pass.Progress) {
	return func(p pass.Progress) {
		s.progress(progressFacts{progressEvent, model, "training steps", int64(p.Step), int64(p.Steps)})
	}
}

// progress prints a line every progressInterval.
func (s *Stream) progress(f progressFacts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() && now.Sub(s.last) < progressInterval {
		return
	}
	if !s.last.IsZero() {
		_ = s.line(f) // an error of stdout is one of Model, too
	}
	s.last = now
}

// Model prints the outcome of a model.
func (s *Stream) Model(o Outcome, exitCode int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Time{}
	f := modelFacts{Event: modelEvent, Model: o.Model, ExitCode: exitCode, Result: o.Status()}
	if o.Err != nil {
		f.Error = Shown(o.Err.Error())
	} else {
		r := o.Result.Report
		f.Output, f.Bytes, f.Reports = o.Result.Output, &r.Totals.FileBytes, o.Result.Reports
		if len(r.Gates) > 0 {
			f.Verdict = r.Verdict.Text()
		}
	}
	s.summary.Add(f.Result, f.Bytes)
	if s.json {
		return s.line(f)
	}
	return s.text(o, f)
}

func (s *Stream) text(o Outcome, f modelFacts) error {
	if o.Err != nil {
		_, err := fmt.Fprintln(s.w, s.style.bold(Escape(o.Model))+"  "+s.style.bad(report.Failed))
		return err
	}
	text := change(s.style, *f.Bytes)
	if sqnr := outputSQNR(o.Result.Report.Verification); sqnr != "" {
		text += "  output SQNR " + sqnr
	}
	if gates := allGates(s.style, o.Result.Report); gates != "" {
		text += "  " + gates
	}
	if o.Result.UpToDate {
		text += "  " + s.style.dim(report.UpToDate)
	}
	_, err := fmt.Fprintln(s.w, s.style.bold(Escape(o.Model))+" → "+s.style.bold(target(o.Result))+"  "+text)
	return err
}

// End prints the summary.
func (s *Stream) End(exitCode int) error {
	m := &s.summary
	m.Event, m.ExitCode = summaryEvent, exitCode
	if s.json {
		return s.line(m)
	}
	return CountsText(s.w, m.Counts)
}

// CountsText prints the numbers of models by their status, and their sizes.
func CountsText(w io.Writer, c report.Counts) error {
	text := english.Plural(c.Models, "model", "") + ":"
	for _, n := range []struct {
		count  int
		status string
	}{
		{c.Written, report.Written}, {c.Planned, report.Planned}, {c.UpToDate, report.UpToDate}, {c.Rejected, report.Rejected}, {c.Failed, report.Failed},
		{c.Missing, report.Missing}, {c.Invalid, report.Invalid}, {c.Unlisted, report.Unlisted},
	} {
		if n.count > 0 {
			text += fmt.Sprintf(" %d %s,", n.count, n.status)
		}
	}
	_, err := fmt.Fprintf(w, "%s %s → %s\n", text, size(c.BytesBefore), size(c.BytesAfter))
	return err
}
