package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Selected is the part of a list of models that one run compresses.
type Selected struct {
	fleet.Shard
	Models   int   `json:"models"`
	OfModels int   `json:"of_models"`
	Bytes    int64 `json:"bytes,omitempty"` // of the files of the models; 0 for a whole list
	OfBytes  int64 `json:"of_bytes,omitempty"`
}

// String describes the part in words.
func (s Selected) String() string {
	from := ""
	if s.From != "" {
		from = " (" + s.From + ")"
	}
	return fmt.Sprintf("shard %s%s: %d of %s, %s of %s", s.Shard, from, s.Models, english.Plural(s.OfModels, "model", ""), size(s.Bytes), size(s.OfBytes))
}

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

// The results of models. One that is up to date was not compressed again, see --if-changed.
const (
	resultWritten  = "written"
	resultPlanned  = "planned"
	resultUpToDate = "up-to-date"
	resultRejected = "rejected"
	resultFailed   = "failed"
)

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
	Event       string `json:"event"`
	Models      int    `json:"models"`
	Written     int    `json:"written"`
	Planned     int    `json:"planned,omitempty"`
	UpToDate    int    `json:"up_to_date"`
	Rejected    int    `json:"rejected"`
	Failed      int    `json:"failed"`
	BytesBefore int64  `json:"bytes_before"`
	BytesAfter  int64  `json:"bytes_after"`
	ExitCode    int    `json:"exit_code"`
}

// startFacts is the first line.
type startFacts struct {
	Event string   `json:"event"`
	Shard Selected `json:"shard"`
}

// NewStream begins a stream with the models of this run.
func NewStream(w io.Writer, s Style, asJSON bool, selected Selected) (*Stream, error) {
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
	f := modelFacts{Event: modelEvent, Model: o.Model, ExitCode: exitCode, Result: result(o)}
	s.summary.add(o, f.Result)
	if o.Err != nil {
		f.Error = o.Err.Error()
	} else {
		r := o.Result.Report
		f.Output, f.Bytes, f.Reports = o.Result.Output, &r.Totals.FileBytes, o.Result.Reports
		if len(r.Gates) > 0 {
			f.Verdict = r.Verdict.Text()
		}
	}
	if s.json {
		return s.line(f)
	}
	return s.text(o, f)
}

func result(o Outcome) string {
	switch {
	case o.Err != nil:
		return resultFailed
	case o.Result.Rejected:
		return resultRejected
	case o.Result.Done:
		return resultUpToDate
	case o.Result.Output == "":
		return resultPlanned
	}
	return resultWritten
}

func (s *Stream) text(o Outcome, f modelFacts) error {
	if o.Err != nil {
		_, err := fmt.Fprintln(s.w, s.style.bold(Escape(o.Model))+"  "+s.style.bad(resultFailed))
		return err
	}
	text := change(s.style, *f.Bytes)
	if sqnr := outputSQNR(o.Result.Report.Verification); sqnr != "" {
		text += "  output SQNR " + sqnr
	}
	if gates := allGates(s.style, o.Result.Report); gates != "" {
		text += "  " + gates
	}
	if o.Result.Done {
		text += "  " + s.style.dim(resultUpToDate)
	}
	_, err := fmt.Fprintln(s.w, s.style.bold(Escape(o.Model))+" → "+s.style.bold(target(o.Result))+"  "+text)
	return err
}

func (m *summary) add(o Outcome, result string) {
	m.Models++
	*map[string]*int{resultWritten: &m.Written, resultPlanned: &m.Planned, resultUpToDate: &m.UpToDate, resultRejected: &m.Rejected, resultFailed: &m.Failed}[result]++
	if o.Err == nil {
		m.BytesBefore += o.Result.Report.Totals.FileBytes.Before
		m.BytesAfter += o.Result.Report.Totals.FileBytes.After
	}
}

// End prints the summary.
func (s *Stream) End(exitCode int) error {
	m := &s.summary
	m.Event, m.ExitCode = summaryEvent, exitCode
	if s.json {
		return s.line(m)
	}
	text := english.Plural(m.Models, "model", "") + ":"
	for _, n := range []struct {
		count int
		what  string
	}{{m.Written, resultWritten}, {m.Planned, resultPlanned}, {m.UpToDate, resultUpToDate}, {m.Rejected, resultRejected}, {m.Failed, resultFailed}} {
		if n.count > 0 {
			text += fmt.Sprintf(" %d %s,", n.count, n.what)
		}
	}
	_, err := fmt.Fprintf(s.w, "%s %s → %s\n", text, size(m.BytesBefore), size(m.BytesAfter))
	return err
}
