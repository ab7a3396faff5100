package latency

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

const mlp = "../../fixtures/mlp.onnx"

func TestRunCountsAndOrdersTimes(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 4, Workers: 1, Runs: 7}
	m, err := j.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if m.Runs < 7 || m.Min <= 0 || m.Min > m.Median || m.Median > m.P90 {
		t.Errorf("got %+v", m)
	}
	if want := 4 / m.Median; math.Abs(m.PerSec-want) > 1e-9*want {
		t.Errorf("%v samples a second, want %v", m.PerSec, want)
	}
	if m.Arena <= 0 || m.Weights <= 0 {
		t.Errorf("the engine holds %d bytes of weights and an arena of %d", m.Weights, m.Arena)
	}
}

func TestRunThatDoesNotFitIsNotMade(t *testing.T) {
	j := Job{Model: mlp, Backend: Embedded, Batch: 4, Workers: 1, Runs: 1, Budget: 1}
	m, err := j.Run(context.Background())
	if err != nil || !m.Over() || m.Runs != 0 {
		t.Errorf("got %+v, %v", m, err)
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
	m, err := (&Job{Model: model, Backend: Embedded, Batch: 2, Workers: 1, Runs: 2, Decode: 3, Prompt: 5}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const layer = 2 * 2 * 4 * 8 * 4 // keys and values, sequences, heads, size, bytes
	if m.Runs < 2 || m.Prompt <= 0 || m.Decode <= 0 || m.Cache != 5*layer*(5+3) || m.Weights <= 0 {
		t.Errorf("got %+v", m)
	}
	if rate := 2 * (5/m.Prompt + 3/m.Decode); rate > 2*m.P90 || rate < m.Min/2 {
		t.Errorf("prompt and steps take %v s by their rates, a run %v to %v", rate, m.Min, m.P90)
	}
	if _, err := (&Job{Model: mlp, Backend: Embedded, Batch: 1, Runs: 1, Decode: 3, Prompt: 5}).Run(context.Background()); err == nil {
		t.Error("a model without tokens is no error")
	}
}
