package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcompress/mcompress/report/verification"
)

// indexOf is an index of n results of various sizes and SQNRs, and of a model of each other result.
func indexOf(t *testing.T, n int) *Index {
	t.Helper()
	x, plain := &Index{}, verified(t, nil)
	for i := range n {
		sqnr, agreement := 12+float64((i*7919)%400)/10, 0.9+float64(i%10)/100
		v := &verification.Result{Backend: "embedded",
			Data: &verification.Data{Samples: 9, Batch: 1, Name: "d.npz", SHA256: strings.Repeat("a", 64)},
			Outputs: []verification.Output{{Name: "y", Errors: &verification.Errors{SQNR: &sqnr, Elements: 9},
				Agreement: &agreement}}}
		r := *plain
		r.Verification = v
		var err error
		if r.Gates, err = r.Evaluate([]Limit{{"min-sqnr", 14}}, nil); err != nil {
			t.Fatal(err)
		}
		r.Verdict = NewVerdict(r.Gates, v)
		r.Totals.FileBytes.Before = 1 << 20
		r.Totals.FileBytes.After = 200_000 + int64(i*104729)%400_000
		r.Totals.Ratio = round(ratio(r.Totals.FileBytes), 4)
		r.Digest = fmt.Sprintf("%064x", i)
		result := Written
		if !r.Passed() {
			result = Rejected
		}
		name := fmt.Sprintf("team-%d/model-%05d", i%20, i)
		e := NewEntry(name+".onnx", result, name+".dynamic-int8"+JSONSuffix, &r)
		e.Page = name + ".dynamic-int8.report.html"
		x.Entries = append(x.Entries, e)
	}
	unlisted := NewEntry("", Unlisted, "old/model"+JSONSuffix, plain)
	x.Entries = append(x.Entries, unlisted,
		Entry{Model: "bad.onnx", Status: Failed, ExitCode: 4, Error: "bad.onnx: offset 0: not a valid protobuf message"},
		Entry{Model: "gone.onnx", Status: Missing},
		Entry{Model: "signs.onnx", Status: Invalid, Error: "the report is not valid", Report: "a b%20c#d?e" + JSONSuffix,
			Page: "a b%20c#d?e.report.html"},
		Entry{Model: "javascript:" + injection, Status: Invalid,
			Error: "the report was changed after it was written: " + hostile, Report: "javascript:" + injection + JSONSuffix,
			Page: "javascript:" + injection + ".report.html"},
	)
	x.Sort()
	return x
}

func TestIndexHasTheWorstFirst(t *testing.T) {
	x := indexOf(t, 400)
	var got []string
	for _, e := range x.Entries {
		if len(got) == 0 || got[len(got)-1] != e.Status {
			got = append(got, e.Status)
		}
	}
	if want := []string{Failed, Invalid, Missing, Rejected, Written, Unlisted}; !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	last := 0.0
	for _, e := range x.Entries {
		if e.Status == Written {
			if *e.Output.Errors.SQNR < last {
				t.Fatalf("%s has %v dB after %v dB", e.Model, *e.Output.Errors.SQNR, last)
			}
			last = *e.Output.Errors.SQNR
		}
	}
}

// Without an SQNR of the output: without signal first, then not run, then by agreement; equal outputs last.
func TestIndexOrdersWhatHasNoSQNR(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	x := &Index{}
	for name, o := range map[string]*verification.Output{
		"a": {Errors: &verification.Errors{NonFinite: 1, Elements: 2}},
		"b": {Errors: &verification.Errors{SQNR: num(90), Elements: 2}}, "c": nil,
		"d": {Agreement: num(0.5)}, "e": {Agreement: num(0.75)},
		"f": {Errors: &verification.Errors{Exact: true, Elements: 2}},
	} {
		x.Entries = append(x.Entries, Entry{Model: name, Status: Written, Headline: &Headline{Output: o}})
	}
	x.Sort()
	names := ""
	for _, e := range x.Entries {
		names += e.Model
	}
	if names != "abcdef" {
		t.Errorf("got %s, want abcdef", names)
	}
}

// The totals are those of the results; figures that are not of the list, or not those of the run, are left out.
func TestIndexTotals(t *testing.T) {
	x := indexOf(t, 400)
	var sizes, runtime Change
	rejected := 0
	for _, e := range x.Entries {
		if e.Headline == nil || e.Status == Unlisted {
			continue
		}
		sizes.Before, sizes.After = sizes.Before+e.FileBytes.Before, sizes.After+e.FileBytes.After
		runtime.Before, runtime.After = runtime.Before+e.RuntimeBytes.Before, runtime.After+e.RuntimeBytes.After
		if len(e.Failures) > 0 {
			rejected++
		}
	}
	want := IndexTotals{
		Counts: Counts{Models: 404, Written: 400 - rejected, Rejected: rejected, Failed: 1, Missing: 1, Invalid: 2,
			Unlisted: 1, BytesBefore: sizes.Before, BytesAfter: sizes.After},
		RuntimeBytes: runtime, Ratio: round(float64(sizes.Before)/float64(sizes.After), 4),
	}
	if x.Totals != want || rejected == 0 {
		t.Errorf("got %+v, want %+v", x.Totals, want)
	}
}

func TestIndexKeepsTheSchema(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile("../docs/index-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(doc)
	}
	for _, x := range []*Index{indexOf(t, 20), {}} {
		var b bytes.Buffer
		if err := x.JSON(&b); err != nil {
			t.Fatal(err)
		}
		if err := validate(b.String()); err != nil {
			t.Error(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines != len(x.Entries)+3 {
			t.Errorf("%d lines for %d entries", lines, len(x.Entries))
		}
		for _, c := range []struct{ old, new string }{{`"status":"written"`, `"status":"done"`}, {`"written":`, `"made":`},
			{`"schema_version":1`, `"schema_version":2`}, {`"failed_gates"`, `"gates"`}} {
			text := strings.Replace(b.String(), c.old, c.new, 1)
			if text != b.String() && validate(text) == nil {
				t.Errorf("the schema accepts %s", c.new)
			}
		}
	}
}

func TestIndexPage(t *testing.T) {
	x := indexOf(t, 40)
	page := content(t, x.HTML)
	for _, want := range []string{
		"<h1>Index of 44 models</h1>", `<a href="team-1/model-00001.dynamic-int8.report.html">team-1/model-00001.onnx</a>`,
		"bound ≥ 14 dB", "offset 0: not a valid protobuf message",
		"Not counted, because it is not valid or was changed after it was written: 2 reports.",
		"Not counted, because its model is not in the list: 1 report.", "Models by compression ratio.",
		"Models by output SQNR in dB.",
		`href="./javascript:`, `href="a%20b%2520c%23d%3Fe.report.html"`, `title="` + fmt.Sprintf("%064x", 7) + `"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, bad := range []string{"<img", "<script", "\u202e", `href="javascript`, "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(page, "<tr>"); n != 1+len(x.Entries) {
		t.Errorf("%d rows for %d entries", n, len(x.Entries))
	}
	if err := (&Index{}).HTML(io.Discard); err != nil {
		t.Error(err)
	}
}

// Entries have no reference to the rest of a report: those of 10,000 reports are a few megabytes.
func TestEntriesAreSmall(t *testing.T) {
	e := NewEntry("m.onnx", Written, "m.report.json", verified(t, layered(40, node)))
	text, err := json.Marshal(e)
	if err != nil || len(text) > 2000 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}

// Figures of reports that others wrote may be any numbers.
func TestIndexOfStrangeFigures(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	x := &Index{}
	for i, v := range []float64{1e300, -1e300, 1e-320, 0, 3e38, 5} {
		x.Entries = append(x.Entries, Entry{Report: fmt.Sprint(i), Status: Written, Failures: []Gate{{Name: injection}},
			Headline: &Headline{
				Ratio: v, FileBytes: Change{-1 << 63, 1<<63 - 1}, RuntimeBytes: Change{0, -5}, Methods: "m", Digest: injection,
				Output: &verification.Output{Errors: &verification.Errors{SQNR: num(v), Elements: -1}}, Data: &verification.Data{},
			}})
	}
	x.Sort()
	if page := content(t, x.HTML); strings.Contains(page, "<img") || strings.Contains(page, "NaN") ||
		!strings.Contains(page, "compression ratio") {
		t.Error("the page has markup of a report, NaN or no chart")
	}
	if err := x.JSON(io.Discard); err != nil {
		t.Error(err)
	}
}
