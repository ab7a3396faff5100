package tune

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

var methods = []*pass.Method{quantize.DynamicInt8{}.Method(), quantize.WeightInt4{}.Method(),
	quantize.WeightInt8{}.Method(), quantize.Float16{}.Method()}

// candidate is a method with its defaults.
func candidate(m *pass.Method) Candidate {
	return Candidate{m.Name, func(only pass.Globs, _ Phase, _ int) (pass.Options, error) {
		return pass.NewStep(m, func(fs *flag.FlagSet) error {
			for _, g := range only {
				if err := fs.Set("only", g); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// options are those of a search on the digit classifier in fixtures.
func options(t *testing.T, workers int) Options {
	t.Helper()
	o := Options{
		Input: filepath.Join("..", "..", "fixtures", "cnn.onnx"), Dir: t.TempDir(), Workers: workers, Memory: 64 << 20,
		Data: job.Data{Path: filepath.Join("..", "..", "fixtures", "digits_test.npz"), Options: dataset.Options{Limit: 200}},
	}
	for _, m := range methods {
		o.Candidates = append(o.Candidates, candidate(m))
	}
	return o
}

// written is the file size after steps, and the result of verification.
func written(t *testing.T, o Options, steps []pass.Options) (int64, *verification.Result) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.onnx")
	_, err := job.Run(context.Background(), job.Options{
		Input: o.Input, Output: out, Label: "auto", Steps: steps, Workers: 2, Memory: 64 << 20, Digest: true,
		Verify: &job.Verification{Data: o.Data, Backend: job.Backend{Workers: 2}, Force: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := job.Verify(context.Background(), o.Input, out,
		job.Verification{Data: o.Data, Backend: job.Backend{Workers: 2}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), r
}

// The chosen model holds the gate when written and run, and is smaller than any single method that holds it.
func TestChosenModelHoldsGatesAndIsSmallest(t *testing.T) {
	for _, gate := range []report.Limit{{Name: "min-sqnr", Bound: 30}, {Name: "min-sqnr", Bound: 45},
		{Name: "max-accuracy-drop", Bound: 0.01}} {
		o := options(t, 2)
		o.Gates = []report.Limit{gate}
		steps, search, err := Choose(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		size, r := written(t, o, steps)
		if !holds(t, r, gate) {
			t.Errorf("%v does not hold", gate)
		}
		if want := search.Trials[search.Chosen]; !want.Accepted || size != want.Bytes {
			t.Errorf("%v: the file is %d bytes, the trial %d; held: %v", gate, size, want.Bytes, want.Accepted)
		}
		for _, m := range methods {
			step, err := candidate(m).Step(nil, Final, 0)
			if err != nil {
				t.Fatal(err)
			}
			if trySingleCandidates, r := written(t, o, []pass.Options{step}); holds(t, r, gate) && trySingleCandidates < size {
				t.Errorf("%v: %s alone is %d bytes, the chosen model %d", gate, m.Name, trySingleCandidates, size)
			}
		}
	}
}

func holds(t *testing.T, r *verification.Result, gate report.Limit) bool {
	t.Helper()
	gates, err := report.EvaluateGates(r, []report.Limit{gate})
	if err != nil {
		t.Fatal(err)
	}
	return report.Passed(gates)
}

// The file size is at most the target, and a larger target never has a lower SQNR.
func TestTargetSize(t *testing.T) {
	before := -1000.0
	for _, bytes := range []int64{45 << 10, 70 << 10, 120 << 10} {
		o := options(t, 2)
		o.Bytes = bytes
		steps, search, err := Choose(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := search.Trials[search.Chosen].Bytes; got > bytes {
			t.Errorf("%d bytes, want at most %d", got, bytes)
		}
		_, r := written(t, o, steps)
		if db := r.Worst().Errors.DB(); db < before {
			t.Errorf("%.1f dB in %d bytes, %.1f dB in fewer", db, bytes, before)
		} else {
			before = db
		}
	}
	o := options(t, 2)
	o.Bytes = 100
	if _, _, err := Choose(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the target is 100") {
		t.Errorf("got %v", err)
	}
}

// failing is a candidate whose steps fail in a phase, on one weight or on all.
func failing(name, weight string, phase Phase) Candidate {
	c := candidate(quantize.WeightInt8{}.Method())
	return Candidate{name, func(only pass.Globs, at Phase, calibrate int) (pass.Options, error) {
		if at == phase && (weight == "" || slices.Contains(only, weight)) {
			return nil, fmt.Errorf("%s does not work", name)
		}
		return c.Step(only, at, calibrate)
	}}
}

// A candidate that fails, on the whole model or on one weight, ends no search: the others go on, and the search names
// what was left out.
func TestFailingCandidatesAreLeftOut(t *testing.T) {
	o := options(t, 2)
	o.Data.Options.Limit = 20
	o.Candidates = o.Candidates[:1]
	found, err := Sensitivity(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	weight := found.Layers[0].Tensors[0]
	for name, c := range map[string]Candidate{"whole model": failing("broken", "", First),
		"one weight": failing("broken", weight, Measuring)} {
		o.Candidates = append(o.Candidates[:1:1], c)
		o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 10}}
		_, search, err := Choose(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := search.Failures(); len(got) != 1 || !strings.Contains(got[0], "broken does not work") {
			t.Errorf("%s: %q", name, got)
		}
		if n := len(search.Trials); n == 0 || search.Trials[search.Chosen].Error != "" {
			t.Errorf("%s: %d combinations", name, n)
		}
	}
}

// Combinations that fail are named, by what they are or by their candidates, with the error.
func TestFailingCombinationsAreNamed(t *testing.T) {
	o := options(t, 2)
	o.Data.Options.Limit = 20
	o.Candidates = append(o.Candidates[:1:1], failing("broken", "", Trying))
	o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 10}}
	if _, _, err := Choose(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "on the Pareto front, by size: broken does not work") {
		t.Errorf("got %v", err)
	}
	o.Gates, o.Bytes = nil, 400_000
	_, search, err := Choose(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := search.Failures(); !slices.ContainsFunc(got, func(f string) bool {
		return strings.HasSuffix(f, "× broken: broken does not work")
	}) {
		t.Errorf("%q", got)
	}
}

func TestImpossibleGate(t *testing.T) {
	o := options(t, 2)
	o.Gates = []report.Limit{{Name: "max-accuracy-drop", Bound: -0.9}}
	if _, _, err := Choose(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no smaller file holds") {
		t.Errorf("got %v", err)
	}
}

func TestChoiceDoesNotDependOnWorkers(t *testing.T) {
	var first string
	for _, workers := range []int{1, 2, 3} {
		o := options(t, workers)
		o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 35}}
		steps, search, err := Choose(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := (&pass.Recipe{Steps: steps}).Text(nil)
		if err != nil {
			t.Fatal(err)
		}
		trail, err := json.Marshal(search)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s%s", recipe, trail)
		if first == "" {
			first = text
		}
		if text != first {
			t.Errorf("%d workers: %s, want %s", workers, text, first)
		}
	}
}

// The sensitivity of one weight equals the verified error of quantizing it alone.
func TestSensitivityEqualsVerify(t *testing.T) {
	o := options(t, 2)
	o.Data.Options.Limit = 32
	o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 1}}
	search, err := Sensitivity(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	layer := search.Layers[0]
	for _, v := range layer.Variants {
		for _, m := range methods {
			if m.Name != v.Method {
				continue
			}
			step, err := candidate(m).Step(only(layer.Tensors), Final, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, r := written(t, o, []pass.Options{step})
			got, want := report.SensitivityText("noise", v), fmt.Sprintf("%.1f dB", r.Worst().Errors.DB())
			if got != want {
				t.Errorf("%s of %v: %s, verify reports %s", v.Method, layer.Tensors, got, want)
			}
		}
	}
}

// Weights that share a payload are one layer.
func TestTiedWeightsAreOneLayer(t *testing.T) {
	found := &finder{of: map[string]*layer{}}
	f, err := onnx.Open(filepath.Join("..", "..", "fixtures", "cnn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := f.Model.Graph.Consts()[0].Const
	row := func(name, shared string) pass.Row {
		return pass.Row{Tensor: name, SharedWith: shared, Before: w, Status: pass.Changed}
	}
	found.add(row("a", ""), 0)
	found.add(row("b", "a"), 0)
	found.add(row("c", ""), 0)
	found.add(row("c", ""), 1)
	if len(found.list) != 2 || !reflect.DeepEqual(found.of["b"].names, []string{"a", "b"}) ||
		len(found.of["c"].variants) != 2 {
		t.Errorf("%+v", found.list)
	}
}

func TestOnlyMatchesNamesAlone(t *testing.T) {
	for _, name := range []string{"a*b", "w[0]", "{x,y}", `c\d`, "op:MatMul", "plain/name.0"} {
		s := pass.Globs{}
		for _, g := range only([]string{name}) {
			if err := s.Set(g); err != nil {
				t.Errorf("%q: %v", g, err)
			}
		}
		if len(s) != 1 {
			t.Errorf("%q became %d globs", name, len(s))
		}
	}
}

// Folding a BatchNormalization adds a bias, which no step can select: it follows the filters of its Conv.
func TestAddedConstantsAreNotSelected(t *testing.T) {
	o := options(t, 1)
	o.Input, o.Data = filepath.Join("..", "..", "fixtures", "opset7.onnx"), job.Data{}
	o.Candidates = []Candidate{candidate(quantize.StaticInt8{}.Method())}
	search, err := Sensitivity(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range search.Layers {
		found = found || slices.Contains(l.Tensors, "conv.weight")
	}
	if !found {
		t.Errorf("filters of the Conv were not measured: %+v", search.Layers)
	}
}

// Weights of subgraphs, whose branches samples may not run, are not measured, and the error of a model that has no
// others says so.
func TestWeightsOfSubgraphsAreNotMeasured(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}, {N: 64}}}
	m.Graph.Inputs = []*ir.Value{x}
	positive := m.Graph.Insert(nil, "Greater", []*ir.Value{
		m.Graph.Insert(nil, "ReduceMax", []*ir.Value{x}, ir.IntAttr("keepdims", 0)),
		m.Graph.AddConst("zero", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(0)}),
	})
	y := m.Graph.Insert(nil, "If", []*ir.Value{positive})
	for _, name := range []string{"then_branch", "else_branch"} {
		g := ir.NewSubgraph(m.Graph, y.Producer())
		g.Name = name
		w := g.AddConst(name+"_w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{64, 64}},
			Source: ir.Floats(make([]float32, 64*64)...)})
		g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{x, w}))
		y.Producer().SetAttr(&ir.Attr{Name: name, Type: ir.AttrGraph, Graph: g})
	}
	m.Graph.AddOutput(y)
	o := options(t, 1)
	o.Input, o.Data = filepath.Join(t.TempDir(), "m.onnx"), job.Data{}
	if _, err := onnx.Save(t.Context(), m, o.Input, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 1}}
	var none *Unreachable
	if _, err := Sensitivity(t.Context(), o); !errors.As(err, &none) || !strings.Contains(err.Error(), "subgraphs") {
		t.Errorf("error %v", err)
	}
}
