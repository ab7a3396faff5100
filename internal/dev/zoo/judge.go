package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// tolerance is the difference of SQNR, in decibels, between a report and ONNX Runtime, and high the SQNR from which on
// a difference does not count. Activations that are rounded to 8 bits or to float16 are rounded otherwise where sums
// differ by one unit in the last place, or where a runtime keeps float32 between operators, so that less is lost by
// chance in one of them.
const (
	tolerance = 3
	rounded   = 10
	high      = 40
)

// judge holds a result to its report: onnx.checker accepts it, ONNX Runtime loads it with and without optimizations,
// its outputs there have the errors that the report states, and the files their sizes. It returns what is wrong, or
// nothing.
func (r *result) judge(oracle *conform.Worker, m model, c command, samples recording, written string) string {
	stated, err := readReport(written)
	if err != nil {
		return "no report: " + err.Error()
	}
	r.Embedded, r.Weights = lowestOutput(stated), lowestWeight(stated)
	if why := sizes(stated, filepath.Dir(written)); why != "" {
		return why
	}
	if slices.Contains(c.args, "embedded") {
		return ""
	}
	if err := oracle.Check(written, true); err != nil && !contributed(err) && oracle.Check(m.path, true) == nil {
		return err.Error()
	}
	if !samples.loads {
		return ""
	}
	for _, level := range []string{"none", "all"} {
		if why := r.run(oracle, m, c, samples, written, stated, level); why != "" {
			return fmt.Sprintf("ONNX Runtime (optimizations: %s): %s", level, why)
		}
	}
	return ""
}

// contributed reports an error of onnx.checker about operators of ONNX Runtime, of which it knows none.
func contributed(err error) bool {
	return strings.Contains(err.Error(), "No opset import for domain 'com.microsoft") ||
		strings.Contains(err.Error(), "No Op registered")
}

// run compares the outputs of a result in ONNX Runtime with those of its source.
func (r *result) run(oracle *conform.Worker, m model, c command, samples recording, written string,
	stated *report.Report, level string) string {
	o := conform.Options{Level: level, Inputs: samples.inputs}
	outputs, err := oracle.Compare(m.path, written, o)
	if err != nil {
		if _, source := oracle.Run(m.path, o); source != nil {
			return ""
		}
		if _, own := oracle.Run(written, o); own == nil && otherSizes(stated) {
			return ""
		}
		return err.Error()
	}
	r.ORT = figure(conform.LowestSQNR(outputs))
	// Without optimizations ONNX Runtime has no precise mode: pairs of 8-bit products saturate in 16 bits on CPUs
	// without VNNI.
	activations := strings.Contains(c.name, "-int8") && !strings.HasPrefix(c.name, "weight")
	switch {
	case c.written == loaded || activations && level == "none":
		return ""
	case activations || strings.Contains(c.name, "compute"):
		return agrees(stated, outputs, rounded)
	}
	return agrees(stated, outputs, tolerance)
}

// agrees compares the errors of outputs with those that a report states.
func agrees(stated *report.Report, outputs []conform.Output, tolerance float64) string {
	if stated.Verification == nil {
		return ""
	}
	for _, s := range stated.Verification.Outputs {
		i := slices.IndexFunc(outputs, func(o conform.Output) bool { return o.Name == s.Name })
		if i < 0 || s.Errors == nil || s.Errors.SQNR == nil && !s.Errors.Exact {
			continue
		}
		want, got := s.Errors.DB(), float64(outputs[i].SQNR)
		if got < min(want, high)-tolerance || want < high && got > want+tolerance {
			return fmt.Sprintf("output %s has %s, the report states %s", s.Name, figure(got), figure(want))
		}
	}
	return ""
}

// otherSizes reports that a result has an output of another size than its source, and says so.
func otherSizes(stated *report.Report) bool {
	return stated.Verification != nil && slices.ContainsFunc(stated.Verification.Outputs,
		func(o verification.Output) bool { return o.Sizes != nil })
}

// sizes compares the files of a result with those in its report.
func sizes(stated *report.Report, folder string) string {
	files := map[string]int64{}
	for _, f := range stated.Result.Files {
		files[f.Name] = f.Bytes
	}
	return conform.Sizes(folder, files, stated.Totals.FileBytes.After)
}

func readReport(written string) (*report.Report, error) {
	text, err := os.ReadFile(strings.TrimSuffix(written, ".onnx") + ".report.json")
	if err != nil {
		return nil, err
	}
	r := &report.Report{}
	return r, json.Unmarshal(text, r)
}

// lowestOutput is the lowest SQNR of the outputs in a report, or why there is none.
func lowestOutput(r *report.Report) string {
	switch v := r.Verification; {
	case v == nil:
		return ""
	case v.Skipped != "":
		return v.Skipped
	case otherSizes(r):
		return "other sizes"
	default:
		return figure(lowest(v))
	}
}

// lowest is the lowest SQNR of the outputs, infinite where they are equal or no floats.
func lowest(v *verification.Result) float64 {
	db := math.Inf(1)
	for _, o := range v.Outputs {
		if o.Errors != nil && o.Errors.SQNR != nil {
			db = min(db, *o.Errors.SQNR)
		}
	}
	return db
}

// lowestWeight is the lowest SQNR of the weights in a report, empty if all are exact.
func lowestWeight(r *report.Report) string {
	db := math.Inf(1)
	for _, w := range r.Weights {
		if w.Error != nil && w.Error.SQNR != nil {
			db = min(db, *w.Error.SQNR)
		}
	}
	if math.IsInf(db, 1) {
		return ""
	}
	return figure(db)
}

// figure is an SQNR as text.
func figure(db float64) string {
	if math.IsInf(db, 1) {
		return "exact"
	}
	return fmt.Sprintf("%.1f dB", db)
}
