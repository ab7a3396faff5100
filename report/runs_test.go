package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcompress/mcompress/report/verification"
)

// runsOf are runs of the given sizes and output SQNRs.
func runsOf(t *testing.T, bytes []int64, sqnrs []float64, change func(i int, r *Report)) *Runs {
	t.Helper()
	rs := &Runs{}
	for i := range bytes {
		v := &verification.Result{Backend: "embedded",
			Data:    &verification.Data{Samples: 9, Batch: 1, Name: "d.npz", SHA256: strings.Repeat("a", 64)},
			Outputs: []verification.Output{{Name: "y", Errors: &verification.Errors{SQNR: &sqnrs[i], Elements: 9}}}}
		r := verified(t, v, Limit{"min-sqnr", 20})
		r.Totals.FileBytes.After = bytes[i]
		if change != nil {
			change(i, r)
		}
		rs.Add(fmt.Sprintf("folder/%s%d.report.json", injection, i), r)
	}
	return rs
}

func TestRunsHaveAParetoFront(t *testing.T) {
	rs := runsOf(t, []int64{100, 200, 300, 150}, []float64{10, 30, 25, 30}, nil)
	var front []string
	for _, r := range rs.Runs {
		if r.Pareto {
			front = append(front, r.Label)
		}
	}
	if want := []string{"A", "D"}; !slices.Equal(front, want) || rs.Quality != "output SQNR" || len(rs.Notes) > 0 {
		t.Errorf("front %q of %q, notes %q, want %q of output SQNR", front, rs.Quality, rs.Notes, want)
	}
}

// The quality is one that all runs have: accuracy before the SQNR, and a metric before accuracy.
func TestQualityIsCommonToAllRuns(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	for want, change := range map[string]func(i int, r *Report){
		"accuracy": func(i int, r *Report) { r.Verification.Accuracy = &verification.Accuracy{After: 0.5} },
		"output SQNR": func(i int, r *Report) {
			r.Verification.Metric = &verification.Metric{Name: fmt.Sprint("m", i), After: num(1)}
		},
		"metric": func(i int, r *Report) {
			r.Verification.Metric = &verification.Metric{Name: "cer", After: num(float64(i))}
			r.Verification.Accuracy = &verification.Accuracy{After: 0.5}
		},
		"": func(i int, r *Report) {
			if i == 1 {
				r.Verification = nil
			}
		},
	} {
		rs := runsOf(t, []int64{100, 100}, []float64{10, 10}, change)
		if rs.Quality != want {
			t.Errorf("got %q, want %q", rs.Quality, want)
		}
		if want == "metric" && (!rs.Runs[0].Pareto || rs.Runs[1].Pareto) {
			t.Error("a lower error rate is not better")
		}
		if err := rs.HTML(io.Discard); err != nil {
			t.Error(err)
		}
	}
}

func TestRunsNoteWhatCannotBeCompared(t *testing.T) {
	rs := runsOf(t, []int64{100, 200}, []float64{10, 20}, func(i int, r *Report) {
		r.Source.Files[0].SHA256 = strings.Repeat(fmt.Sprint(i), 64)
		r.Verification.Data = &verification.Data{Samples: 1, Generated: true, Seed: uint64(i)}
	})
	for i, want := range []string{"different sources", "different samples", "random inputs"} {
		if i >= len(rs.Notes) || !strings.Contains(rs.Notes[i], want) {
			t.Errorf("notes %q, want %q", rs.Notes, want)
		}
	}
}

func TestRunsKeepTheSchema(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile("../docs/runs-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := runsOf(t, []int64{100, 200}, []float64{10, 20}, nil).JSON(&b); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Error(err)
	}
	doc, err = jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(b.String(), `"pareto"`, `"front"`, 1)))
	if err != nil || s.Validate(doc) == nil {
		t.Errorf("the schema accepts another name: %v", err)
	}
}

func TestRunsInMarkdownAndHTML(t *testing.T) {
	rs := runsOf(t, []int64{100, 200}, []float64{10, 21.5}, nil)
	var md bytes.Buffer
	if err := rs.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	page := content(t, rs.HTML)
	for _, want := range []string{"Comparison of 2 runs", "21.5 dB", "200 B", "rounding (1 weight)"} {
		if !strings.Contains(md.String(), want) || !strings.Contains(page, want) {
			t.Errorf("%q is missing:\n%s", want, md.String())
		}
	}
	if !strings.Contains(page, "File size and output SQNR") || strings.Contains(page, "<img") ||
		strings.Contains(md.String(), "<img") {
		t.Error("the chart is missing, or a name got through as it is")
	}
}

func TestLettersAreThoseOfSheets(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := letters(i); got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
}
