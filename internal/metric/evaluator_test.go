package metric

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

func TestSplitIsNoShell(t *testing.T) {
	for line, want := range map[string][]string{
		`python3 eval.py --k 5`:       {"python3", "eval.py", "--k", "5"},
		` a  'b c' "d \" e" f\ g ''`:  {"a", "b c", `d " e`, "f g", ""},
		`a $HOME;rm -rf * | b > "~x"`: {"a", "$HOME;rm", "-rf", "*", "|", "b", ">", "~x"},
		`'a\b' c"d"e`:                 {`a\b`, "cde"},
	} {
		if got, err := Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "  ", "a 'b", `a "b`, `a \`, `"" a`} {
		if got, err := Split(line); err == nil {
			t.Errorf("%q: got %q", line, got)
		}
	}
}

// script writes a Python program.
func script(t *testing.T, text string) []string {
	t.Helper()
	python := conform.Python(t)
	path := filepath.Join(t.TempDir(), "eval.py")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return []string{python, path}
}

// evaluate runs an evaluator on two runs whose second axis differs.
func evaluate(t *testing.T, e Evaluator) (Score, error) {
	t.Helper()
	return measureRuns(t, e.Measure(), 2)
}

// measureRuns measures a model with a reference whose outputs are all the given number.
func measureRuns(t *testing.T, m Measure, reference float32) (Score, error) {
	t.Helper()
	s, err := m.New()
	if err != nil {
		t.Fatal(err)
	}
	folder := s.(*evaluation).folder.Path
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s remains", folder)
		}
	}()
	for run, n := range []int{2, 1} {
		scores := func(x float32) map[string]*ir.Array {
			return map[string]*ir.Array{"y": ir.ArrayOf(slices.Repeat([]float32{x}, 3*n), int64(n), 3),
				"z/w": ir.ArrayOf(make([]float64, n*(run+1)), int64(n), int64(run+1))}
		}
		b := &Batch{
			Inputs: map[string]*ir.Array{"x": ir.ArrayOf(make([]int8, n), int64(n))}, Want: scores(reference), Got: scores(1.5),
			Labels: ir.TextOf([]string{"é", "abc"}[:n], int64(n)), First: 2 * run, N: n,
		}
		if err := s.Add(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return s.Score(t.Context())
}

const evaluatorOfSums = `
import json, sys
import numpy as np
reference, candidate, data = (np.load(p) for p in sys.argv[2:])
assert sys.argv[1] == "a b", sys.argv
assert sorted(candidate) == ["y", "z/w.0", "z/w.1"], list(candidate)
assert candidate["y"].shape == (3, 3) and candidate["y"].dtype == np.float32 and (reference["y"] == 2).all()
assert candidate["z/w.0"].shape == (2, 1) and candidate["z/w.1"].shape == (1, 2)
assert data["x"].dtype == np.int8 and list(data["labels"]) == ["é", "abc", "é"], data["labels"]
print(json.dumps({"name": "sum", "value": float(candidate["y"].sum()), "higher_is_better": True}))
`

// A program gets the outputs of both models, and its value of the reference is the metric before.
func TestEvaluatorsReadOutputsOfBothModels(t *testing.T) {
	e := Command(append(script(t, evaluatorOfSums), "a b"), time.Minute)
	got, err := evaluate(t, e)
	if err != nil || got.Name != "sum" || !got.HigherIsBetter || got.Before != 18 || got.After != 13.5 ||
		!math.IsNaN(got.Error) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The reference is evaluated once for each of its outputs, the model in every measurement.
func TestReferenceIsEvaluatedOnce(t *testing.T) {
	references, candidates := 0, 0
	m := Evaluator(func(_ context.Context, f Files) (Value, error) {
		if f.Reference == f.Candidate {
			references++
			return Value{Name: "calls", Value: float64(references)}, nil
		}
		candidates++
		return Value{Name: "calls", Value: float64(candidates)}, nil
	}).Measure()
	for i, want := range []struct {
		output        float32
		before, after float64
	}{{2, 1, 1}, {2, 1, 2}, {3, 2, 3}, {3, 2, 4}} {
		if s, err := measureRuns(t, m, want.output); err != nil || s.Before != want.before || s.After != want.after {
			t.Errorf("measurement %d: %+v, %v", i, s, err)
		}
	}
}

func TestErrorsOfEvaluators(t *testing.T) {
	for text, want := range map[string]string{
		`raise SystemExit("no model")`: "exit status 1: no model",
		`print("loss 3")`:              "its output \"loss 3\\n\" is not JSON",
		`print('{"name": "a", "value": NaN, "higher_is_better": true}')`:   "is not JSON",
		`print('{"name": "a", "value": 1}')`:                               "lacks one of name, value and higher_is_better",
		`print('{"name": "a", "value": "1", "higher_is_better": true}')`:   "is not JSON of the form",
		`print('{"name": "", "value": 1, "higher_is_better": true}')`:      "the name of the metric must have",
		`print('{"name": "a", "value": 1, "higher_is_better": true}\n{}')`: "more than one JSON value",
		`print('{"name": "a", "value": 1e999, "higher_is_better": true}')`: "is not JSON",
		`print(" " * 100000)`: "more than 65536 bytes",
		`import sys, json; print(json.dumps({"name": str(sys.argv[1] == sys.argv[2]), "value": 1, "higher_is_better": True}))`: "for the reference and",
	} {
		if got, err := evaluate(t, Command(script(t, text), time.Minute)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v; want %s", text, got, err, want)
		}
	}
	if _, err := evaluate(t, Command(script(t, "import time; time.sleep(1000)"), 100*time.Millisecond)); err == nil ||
		!strings.Contains(err.Error(), "it took more than 100ms") {
		t.Errorf("timeout: got %v", err)
	}
	if _, err := evaluate(t, Command([]string{"/no/such/program"}, time.Minute)); err == nil {
		t.Error("a missing program is no error")
	}
	nan := Evaluator(func(context.Context, Files) (Value, error) { return Value{Name: "a", Value: math.Inf(1)}, nil })
	if _, err := evaluate(t, nan); err == nil || !strings.Contains(err.Error(), "not a finite number") {
		t.Errorf("got %v", err)
	}
}

// The archive is read back by the reader of data.
func TestArchivesAreReadable(t *testing.T) {
	read := Evaluator(func(ctx context.Context, f Files) (Value, error) {
		in := []dataset.Input{{Name: "y", Type: &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 3}}}}}
		s, err := dataset.Open(f.Candidate, in, nil, dataset.Options{})
		if err != nil {
			return Value{}, err
		}
		defer s.Close()
		return Value{Name: "samples", Value: float64(s.Len())}, nil
	})
	if got, err := evaluate(t, read); err != nil || got.After != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
}
