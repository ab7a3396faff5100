package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report/verification"
)

// Metrics of trained models and of their quantized forms are those of the reference implementations on the outputs of
// ONNX Runtime.
func TestMetricsOfTrainedModels(t *testing.T) {
	w := conform.Start(t)
	fixtures := filepath.Join(conform.Shared(t), "fixtures")
	for _, c := range []struct {
		model, data string
		arrays      []string
		step        int // of samples
		tokens      int // of the model's vocabulary
		tolerance   map[string]float64
	}{
		{"text/magika_v3_3", "magika/inputs.npz", []string{"bytes", "label"}, 16, 0,
			map[string]float64{"top1": exact, "top5": exact, "f1": exact}},
		{"transformer/minilm_l6_v2_vocab3086", "sms_spam/sms800_tokens.npz",
			[]string{"input_ids", "attention_mask", "labels"}, 80, 0,
			map[string]float64{"nearest-centroid": exact, "spearman": exact, "embedding-cosine": 1e-6}},
		{"transformer/gpt2_tiny_fp32", "sms_spam/sms800_tokens.npz", []string{"input_ids"}, 200, 1000,
			map[string]float64{"perplexity": 1e-4}},
	} {
		model, data := filepath.Join(fixtures, "models", c.model, "model.onnx"), filepath.Join(t.TempDir(), "data.npz")
		if err := w.Thinned(filepath.Join(fixtures, "datasets", c.data), data, c.step, c.tokens,
			c.arrays...); err != nil {
			t.Fatal(err)
		}
		quantized := filepath.Join(t.TempDir(), "quantized.onnx")
		mustRun(t, "quantize", "--method", "weight-int2", "--no-verify", model, "-o", quantized)
		for _, metric := range slices.Sorted(maps.Keys(c.tolerance)) {
			t.Run(filepath.Base(c.model)+" "+metric, func(t *testing.T) {
				var r struct{ Verification verification.Result }
				args := []string{"verify", model, quantized, "--data", data, "--metric", metric,
					"--json", "--no-layers"}
				if i := slices.IndexFunc(c.arrays,
					func(name string) bool { return strings.HasPrefix(name, "label") }); i >= 0 {
					args = append(args, "--labels", c.arrays[i])
				}
				if err := json.Unmarshal(mustRun(t, args...), &r); err != nil {
					t.Fatal(err)
				}
				before, after, err := w.Measured(metric, model, quantized, data, conform.Options{})
				if err != nil {
					t.Fatal(err)
				}
				m := r.Verification.Metric
				if m == nil || m.Before == nil || m.After == nil {
					t.Fatalf("got %+v, the reference implementation %v and %v", m, before, after)
				}
				if e := max(math.Abs(*m.Before-before), math.Abs(*m.After-after)); e > c.tolerance[metric] {
					t.Errorf("got %v and %v, the reference implementation %v and %v", *m.Before, *m.After, before,
						after)
				}
			})
		}
	}
}

// exact is the tolerance of metrics that depend on the order of scores only: reports have 9 digits.
const exact = 1e-9

// mustRun runs a command, and returns what it writes to stdout.
func mustRun(t *testing.T, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"mcompress"}, args...), &stdout, &stderr); code != exitDone {
		t.Fatalf("%s: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.Bytes()
}

// Models with fewer layers or heads have other caches. They decode a sample in several runs as in one.
func TestPerplexityWithFewerCaches(t *testing.T) {
	model := filepath.Join(conform.Shared(t), "fixtures", "models", "transformer", "gpt2_tiny_fp32", "model.onnx")
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.bin")
	var ids []byte
	for i := range 48 {
		ids = binary.LittleEndian.AppendUint16(ids, uint16(i*i*7919%1000))
	}
	if err := os.WriteFile(tokens, ids, 0o600); err != nil {
		t.Fatal(err)
	}
	samples := []string{tokens, "--dim", "seq_len=12"}
	for _, c := range []struct{ method, importance, note string }{
		{"layers", "cosine", "outputs present_* are not compared: the second model has 3 of 5"},
		{"heads", "taylor", "5 outputs are not compared: they have fewer heads in the second model"},
	} {
		pruned := filepath.Join(dir, c.method+".onnx")
		mustRun(t, slices.Concat([]string{"prune", model, "--method", c.method, "--importance", c.importance,
			"-o", pruned, "--report", "none", "--data"}, samples)...)
		var perplexity [2]float64
		for i, step := range []string{"1", "12"} {
			var r struct{ Verification verification.Result }
			if err := json.Unmarshal(mustRun(t, slices.Concat([]string{"verify", model, pruned,
				"--json", "--step", step, "--perplexity"}, samples)...), &r); err != nil {
				t.Fatal(err)
			}
			v := r.Verification
			if len(v.Outputs) != 1 || !slices.Contains(v.Notes, c.note) {
				t.Errorf("%s: outputs %v, notes %q", c.method, v.Outputs, v.Notes)
			}
			perplexity[i] = *v.Metric.After
		}
		if math.Abs(perplexity[0]/perplexity[1]-1) > 1e-5 {
			t.Errorf("%s: perplexity is %v in runs of one token, %v in one run", c.method, perplexity[0], perplexity[1])
		}
	}
}
