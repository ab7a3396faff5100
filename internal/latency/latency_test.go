package latency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/benchmark"
)

const mlp = "../../fixtures/mlp.onnx"

func TestRunCountsAndOrdersTimes(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 4, Workers: 1, Runs: 7}
	m, err := j.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if m.Runs != 7 || m.Min <= 0 || m.Min > m.Median || m.Median > m.P90 || m.Baseline <= 0 || m.Peak < m.Baseline {
		t.Errorf("got %+v", m)
	}
	if want := 4 / m.Median; math.Abs(m.PerSec-want) > 1e-9*want {
		t.Errorf("%v samples a second, want %v", m.PerSec, want)
	}
	if m.Arena <= 0 || m.Weights <= 0 {
		t.Errorf("the engine holds %d bytes of weights and an arena of %d", m.Weights, m.Arena)
	}
}

// Runs go on until the minimum time is over, and warm-up runs are not counted.
func TestMinimumTimeAndWarmup(t *testing.T) {
	const least = 50 * time.Millisecond
	begin := time.Now()
	m, err := (&Job{Model: mlp, Backend: Embedded, Batch: 1, Workers: 1, Runs: 2,
		Time: least}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < least || m.Runs <= 2 || m.First <= 0 || m.Load <= 0 {
		t.Errorf("%d runs in %v: %+v", m.Runs, took, m)
	}
	p, err := (&Job{Model: mlp, Backend: Embedded, Batch: 1, Workers: 1, Runs: 3,
		Warmup: 4}).Profile(context.Background(), nil)
	if err != nil || p.Steps != 3 {
		t.Errorf("%d runs, want 3 after the warm-up: %v", p.Steps, err)
	}
}

// A run that takes more memory than was planned ends after the warm-up.
func TestMemoryAboveTheBudgetEndsTheRun(t *testing.T) {
	s, err := (&Job{Model: mlp, Backend: Embedded, Workers: 1}).opened(t)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{"input": ir.NewArray(ir.Float, 1, 1, 20, 20)}
	m := measurement{&benchmark.Measure{Baseline: resident() - 1000}}
	if err := m.time(t.Context(), &Job{Batch: 1, Runs: 3, Budget: 999}, s, in); err != nil || m.Needs < 1000 ||
		m.Runs > 0 || !m.Over() {
		t.Errorf("%+v, %v", m, err)
	}
	m = measurement{&benchmark.Measure{Baseline: resident()}}
	if err := m.time(t.Context(), &Job{Batch: 1, Runs: 3, Budget: 1 << 40}, s, in); err != nil || m.Over() ||
		m.Runs < 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

// opened opens the model of j.
func (j *Job) opened(t *testing.T) (engine.Session, error) {
	t.Helper()
	f, err := onnx.Open(j.Model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s, err := j.open(t.Context(), f, nil)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// Packed weights are kept in a folder, whose errors are warnings.
func TestCacheOfARun(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 1, Workers: 1, Runs: 1, Cache: filepath.Join(t.TempDir(), "cache")}
	for range 2 {
		if m, err := j.Run(context.Background()); err != nil || len(m.Warnings) > 0 {
			t.Fatal(m.Warnings, err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(j.Cache, "*.weights")); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
	j.Cache = mlp // no folder
	if m, err := j.Run(context.Background()); err != nil || len(m.Warnings) == 0 {
		t.Errorf("no warning of a folder that is a file: %v", err)
	}
}

// What a backend cannot run is an error before anything is measured.
func TestBackendsThatCannotRun(t *testing.T) {
	if _, err := (&Job{Model: mlp, Backend: "none", Batch: 1}).Run(context.Background()); err == nil {
		t.Error("an unknown backend runs")
	}
	missing := Job{Model: filepath.Join(t.TempDir(), "m.onnx"), Backend: Embedded, Batch: 1}
	if _, err := missing.Run(context.Background()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing model: %v", err)
	}
	if _, err := missing.Profile(context.Background(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the profile of a missing model: %v", err)
	}
	if _, err := (&Job{Model: mlp, Backend: ORT, Batch: 1}).Profile(context.Background(), nil); err == nil {
		t.Error("ONNX Runtime is profiled")
	}
}

// Random tokens are in the vocabulary, and below 100 where it is not known.
func TestRandomTokens(t *testing.T) {
	for vocabulary, bound := range map[int64]int64{7: 7, 0: defaultVocabulary} {
		ids, seen := randomTokens(rand.New(rand.NewPCG(1, 0)), vocabulary, 3, 400), map[int64]bool{}
		for _, sequence := range ids {
			if len(sequence) != 400 {
				t.Errorf("a sequence of %d tokens", len(sequence))
			}
			for _, id := range sequence {
				seen[id] = true
				if id < 0 || id >= bound {
					t.Errorf("token %d of %d", id, bound)
				}
			}
		}
		if len(ids) != 3 || len(seen) < int(bound)*9/10 {
			t.Errorf("%d sequences with %d of %d tokens", len(ids), len(seen), bound)
		}
	}
}

func TestRunThatDoesNotFitIsNotMade(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 4, Workers: 1, Runs: 1, Budget: 1}
	m, err := j.Run(context.Background())
	if err != nil || !m.Over() || m.Runs != 0 {
		t.Errorf("got %+v, %v", m, err)
	}
	s, err := j.opened(t)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{"input": ir.NewArray(ir.Float, 4, 1, 20, 20)}
	need := m.Weights + m.Arena
	for budget, over := range map[int64]bool{0: false, need - 1: true, need: false, need + 1: false} {
		m := measurement{&benchmark.Measure{}}
		if err := m.planned(s.(*engine.Interpreter), in, budget); err != nil || m.Over() != over || over &&
			m.Needs != need || m.Weights+m.Arena != need {
			t.Errorf("%d bytes of %d: %+v, %v", need, budget, m, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	var ds []time.Duration
	for i := range 11 {
		ds = append(ds, time.Duration(i)*time.Second)
	}
	if m, p := quantile(ds, 0.5), quantile(ds, 0.9); m != 5 || p != 9 {
		t.Errorf("median %v, 90th percentile %v", m, p)
	}
	if m := quantile(ds[:2], 0.5); m != 0.5 {
		t.Errorf("median of two: %v, want their mean", m)
	}
}

func TestProfileAddsUp(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 1, Workers: 1, Runs: 3}
	p, err := j.Profile(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ops, nodes float64
	for _, r := range p.Operators {
		ops += r.Seconds
	}
	for _, r := range p.Nodes {
		nodes += r.Seconds
	}
	if ops > p.Seconds || math.Abs(ops-nodes) > 1e-9 || len(p.Nodes) == 0 {
		t.Errorf("operators %v, nodes %v of %v seconds", ops, nodes, p.Seconds)
	}
	var b bytes.Buffer
	if err := p.Trace(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []struct{ Ph, Cat string } }
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range trace.TraceEvents {
		count[e.Ph+" "+e.Cat]++
	}
	if count["X step"] != 3 || count["X Flatten"]+count["X Gemm"] != 3*len(p.Nodes) || count["C "] == 0 {
		t.Errorf("events %v of %d nodes", count, len(p.Nodes))
	}
}

// A run of decoding has a prompt and steps, whose keys and values are in the cache.
func TestDecode(t *testing.T) {
	model := filepath.Join(conform.Shared(t), "fixtures", "models", "transformer", "gpt2_tiny_fp32", "model.onnx")
	m, err := (&Job{Model: model, Backend: Embedded, Batch: 2, Workers: 1, Runs: 2, Decode: 3,
		Prompt: 5}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const layer = 2 * 2 * 4 * 8 * 4 // keys and values, sequences, heads, size, bytes
	if m.Runs != 2 || m.Prompt <= 0 || m.Decode <= 0 || m.Peak < m.Baseline || m.Cache != 5*layer*(5+3) ||
		m.Weights <= 0 {
		t.Errorf("got %+v", m)
	}
	if rate := 2 * (5/m.Prompt + 3/m.Decode); rate > 2*m.P90 || rate < m.Min/2 {
		t.Errorf("prompt and steps take %v s by their rates, a run %v to %v", rate, m.Min, m.P90)
	}
	if _, err := (&Job{Model: mlp, Backend: Embedded, Batch: 1, Runs: 1, Decode: 3,
		Prompt: 5}).Run(context.Background()); err == nil {
		t.Error("a model without tokens is no error")
	}
}
