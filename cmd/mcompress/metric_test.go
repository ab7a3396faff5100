package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
)

// accuracyProgram is an evaluator of accuracy, which writes a line for each of its calls.
const accuracyProgram = `
import json, sys
import numpy as np
with open(sys.argv[1], "a") as log:
    print("reference" if sys.argv[2] == sys.argv[3] else "candidate", file=log)
candidate, data = np.load(sys.argv[3]), np.load(sys.argv[4])
scores = candidate[candidate.files[0]]
print(json.dumps({"name": "mine", "value": float((scores.argmax(-1) == data["labels"]).mean()), "higher_is_better": True}))
`

// evaluator writes a program and returns the command line that runs it, and the file of its calls.
func evaluator(t *testing.T, program string) (command, calls string) {
	t.Helper()
	python := conform.Python(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "evaluate.py")
	if err := os.WriteFile(path, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	calls = filepath.Join(dir, "calls")
	return fmt.Sprintf("'%s' '%s' '%s'", python, path, calls), calls
}

// reported runs a command with a report and returns it.
func reported(t *testing.T, args ...string) *report.Report {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.onnx")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"mcompress"}, append(args, "-o", out, "--report", "json")...),
		&stdout, &stderr); code != exitDone {
		t.Fatalf("%s: exit code %d: %s", args, code, stderr.String())
	}
	return readReport(t, out)
}

// count is the number of lines of a file.
func count(t *testing.T, path, line string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), line)
}

// The result of a search is the model of its chosen trial, with the same calibration samples: it holds the gates that
// the trial held.
func TestSearchReturnsTheChosenTrial(t *testing.T) {
	r := reported(t, "quantize", "../../fixtures/cnn.onnx", "--auto", "--max-accuracy-drop", "0.05",
		"--data", "../../fixtures/digits_test.npz", "--limit", "100", "--candidates", "static-int8")
	got, want := r.Verification.Worst().Errors.SQNR, r.Search.Trials[r.Search.Chosen].SQNR
	if math.Abs(*got-*want) > 0.001 {
		t.Errorf("the result has an SQNR of %v dB, its trial %v dB", *got, *want)
	}
}

// A search by the user's program measures what --metric measures, and runs the program once for the source and once for
// each model.
func TestAutoWithEvaluator(t *testing.T) {
	command, calls := evaluator(t, accuracyProgram)
	search := []string{"quantize", "../../fixtures/cnn.onnx", "--auto", "--max-metric-drop", "0.02",
		"--data", "../../fixtures/digits_test.npz", "--limit", "100", "--candidates", "weight-int4,weight-int2"}
	mine := reported(t, append(search, "--evaluator", command)...)
	theirs := reported(t, append(search, "--metric", "top1")...)
	m := mine.Verification.Metric
	if m == nil || m.Name != "mine" || m.Drop() > 0.02 || *m.Before != *theirs.Verification.Metric.Before {
		t.Errorf("got %+v, --metric %+v", m, theirs.Verification.Metric)
	}
	drops := map[string]float64{}
	for _, trial := range theirs.Search.Trials {
		drops[trial.What] = *trial.MetricDrop
	}
	accepted, compared := 0, 0
	for _, trial := range mine.Search.Trials {
		if trial.Accepted {
			accepted++
		}
		if trial.Accepted != (*trial.MetricDrop <= 0.02) {
			t.Errorf("%s: accepted is %v with a drop of %v", trial.What, trial.Accepted, *trial.MetricDrop)
		}
		if want, ok := drops[trial.What]; ok && strings.Contains(trial.What, "Pareto") {
			compared++
			if math.Abs(want-*trial.MetricDrop) > 1e-9 {
				t.Errorf("%s: drop %v, by --metric %v", trial.What, *trial.MetricDrop, want)
			}
		}
	}
	if compared == 0 || accepted == 0 || accepted == len(mine.Search.Trials) {
		t.Errorf("%d trials, %d accepted, %d compared", len(mine.Search.Trials), accepted, compared)
	}
	if n := count(t, calls, "reference"); n != 1 {
		t.Errorf("%d calls for the source", n)
	}
	if n := count(t, calls, "candidate"); n != len(mine.Search.Trials)+1 {
		t.Errorf("%d calls for %d trials and the result", n, len(mine.Search.Trials))
	}
}

// Training by the user's program keeps the weights of the best value, and the program runs once for each evaluation:
// the model before training, each epoch, and the result, for which the source is another reference than on the
// validation set.
func TestTrainingWithEvaluator(t *testing.T) {
	command, calls := evaluator(t, accuracyProgram)
	r := reported(t, "finetune", "../../fixtures/cnn.onnx", "--data", "../../fixtures/digits_test.npz",
		"--epochs", "2", "--evaluator", command)
	training := r.Training[0]
	if training.Metric != "mine" || len(training.ValidationMetric) != 3 ||
		training.ValidationMetric[2].Y != training.ValidationAccuracy[2].Y {
		t.Errorf("%s %v, accuracy %v", training.Metric, training.ValidationMetric, training.ValidationAccuracy)
	}
	if n := count(t, calls, "reference"); n != 2 {
		t.Errorf("%d calls for the source", n)
	}
	if n := count(t, calls, "candidate"); n != 4 {
		t.Errorf("%d calls for models", n)
	}
}

// A program that does not end is an error after --evaluator-timeout.
func TestEvaluatorThatDoesNotEnd(t *testing.T) {
	command, _ := evaluator(t, "import time\ntime.sleep(60)\n")
	model := "../../fixtures/mlp.onnx"
	code, _, stderr := call("verify", model, model, "--data", "../../fixtures/digits_test.npz", "--limit", "4",
		"--evaluator", command, "--evaluator-timeout", "200ms")
	if code == exitDone || !strings.Contains(stderr, "200ms") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
