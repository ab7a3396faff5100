package mcompress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
)

const splitModel = "fixtures/transformer.onnx"

// splitInto writes the stages (ranks 0) or shards of splitModel into a new folder, and returns their manifest.
func splitInto(t *testing.T, stages, ranks int) string {
	t.Helper()
	o := mcompress.SplitOptions{Stages: stages}
	if ranks > 0 {
		o = mcompress.SplitOptions{Ranks: ranks}
	}
	w, err := mcompress.Split(t.Context(), splitModel, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return w.Manifest
}

// tokens are inputs of splitModel that depend on seed.
func tokens(seed int64) map[string]*ir.Array {
	ids := make([]int64, 2*16)
	for i := range ids {
		ids[i] = (seed*31 + int64(i)*7) % 256
	}
	return map[string]*ir.Array{"input_ids": ir.ArrayOf(ids, 2, 16)}
}

// Stages and shards compute the outputs of the whole model, also in concurrent runs, and are refused once they are
// closed.
func TestSplitSession(t *testing.T) {
	whole, err := mcompress.NewSession(t.Context(), splitModel, mcompress.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for _, c := range []struct{ stages, ranks int }{{1, 0}, {2, 0}, {4, 0}, {0, 2}, {0, 4}} {
		t.Run(fmt.Sprintf("%d stages, %d ranks", c.stages, c.ranks), func(t *testing.T) {
			s, err := mcompress.NewSplitSession(t.Context(), splitInto(t, c.stages, c.ranks),
				mcompress.SessionOptions{Limits: mcompress.Limits{Workers: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if in, out := s.Inputs(), s.Outputs(); len(in) != 1 || in[0].Name != "input_ids" || len(out) != 1 ||
				out[0].Name != "logits" {
				t.Errorf("inputs %v, outputs %v", in, out)
			}
			var running sync.WaitGroup
			for seed := range int64(6) {
				running.Go(func() {
					got, err := s.Run(t.Context(), tokens(seed))
					want, wantErr := whole.Run(t.Context(), tokens(seed))
					if err != nil || wantErr != nil {
						t.Error(err, wantErr)
						return
					}
					for i, x := range ir.View[float32](got["logits"]) {
						if y := ir.View[float32](want["logits"])[i]; max(x-y, y-x) > 1e-4 {
							t.Errorf("inputs %d: logit %d is %v, want %v", seed, i, x, y)
							return
						}
					}
				})
			}
			running.Wait()
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Run(canceled, tokens(0)); err == nil {
				t.Error("a canceled run succeeded")
			}
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if _, err := s.Run(t.Context(), tokens(0)); err == nil || err.Error() != "the session is closed" {
					t.Errorf("run after Close: %v", err)
				}
			}
		})
	}
}

// Files that are missing, or not those that the manifest was written with, are errors that name them.
func TestSplitSessionOfOtherFiles(t *testing.T) {
	for name, c := range map[string]struct {
		ranks  int
		change func(folder string, stage []byte) error
		file   string
		want   string
	}{
		"missing stage": {0, func(dir string, _ []byte) error {
			return os.Remove(filepath.Join(dir, "transformer.stage2.onnx"))
		}, "transformer.stage2.onnx", "no such file or directory"},
		"missing shard": {2, func(dir string, _ []byte) error {
			return os.Remove(filepath.Join(dir, "transformer.rank1.segment2.onnx"))
		}, "transformer.rank1.segment2.onnx", "no such file or directory"},
		"missing manifest": {0, func(dir string, _ []byte) error {
			return os.Remove(filepath.Join(dir, "transformer.stages.json"))
		}, "transformer.stages.json", "no such file or directory"},
		"another digest": {0, func(dir string, stage []byte) error {
			w := bytes.Index(stage, []byte("MatMul")) + 6000 // in a weight
			stage[w] ^= 1
			return os.WriteFile(filepath.Join(dir, "transformer.stage2.onnx"), stage, 0o644)
		}, "transformer.stage2.onnx", "the digest is not that of the manifest"},
		"another size": {0, func(dir string, stage []byte) error {
			stage = append(stage, 0x32, 1, 'x') // doc_string
			return os.WriteFile(filepath.Join(dir, "transformer.stage2.onnx"), stage, 0o644)
		}, "transformer.stage2.onnx", "bytes, but the manifest has "},
		"manifest of another model": {0, func(dir string, _ []byte) error {
			other, err := os.ReadFile("fixtures/mlp.onnx")
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "transformer.stage2.onnx"), other, 0o644)
		}, "transformer.stage2.onnx", "bytes, but the manifest has "},
		"another document": {0, func(dir string, _ []byte) error {
			return os.WriteFile(filepath.Join(dir, "transformer.stages.json"), []byte(`{"version": 1, "totals": {}}`), 0o644)
		}, "transformer.stages.json", "not a manifest of stages or shards"},
	} {
		manifest := splitInto(t, 2, c.ranks)
		dir := filepath.Dir(manifest)
		stage, err := os.ReadFile(filepath.Join(dir, "transformer.stage2.onnx"))
		if err != nil && c.ranks == 0 {
			t.Fatal(err)
		}
		if err := c.change(dir, stage); err != nil {
			t.Fatal(err)
		}
		_, err = mcompress.NewSplitSession(t.Context(), manifest, mcompress.SessionOptions{})
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, c.file)+": ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A run of stages in this process, also of several samples at a time, has the bits of the whole model.
func TestSplitRun(t *testing.T) {
	manifest := splitInto(t, 3, 0)
	for _, piped := range []bool{false, true} {
		run, err := mcompress.SplitRun{Samples: 4, Piped: piped}.Compare(t.Context(), splitModel, manifest)
		if err != nil {
			t.Fatal(err)
		}
		o := run.Verification.Outputs[0]
		if len(run.Devices) != 3 || run.Devices[2].Runs != 4 || !o.Errors.Exact || run.Mode == mcompress.RunPiped != piped {
			t.Errorf("piped %v: %+v, output %+v", piped, run, o)
		}
	}
}

// A plan has the stages that Split writes, and times of those that are measured.
func TestPlanStages(t *testing.T) {
	o := mcompress.SplitOptions{Stages: 3, Balance: "flops", Measure: true, Limits: mcompress.Limits{Workers: 1}}
	plan, err := mcompress.PlanStages(t.Context(), splitModel, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Measure = false
	written, err := mcompress.Split(t.Context(), splitModel, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range plan.Stages {
		if s.Seconds <= 0 || s.Last != written.Plan.Stages[i].Last {
			t.Errorf("stage %d: %+v, written %+v", i, s, written.Plan.Stages[i])
		}
	}
	for want, o := range map[string]mcompress.SplitOptions{
		"Stages": {Stages: -1}, "Ranks": {Ranks: 1}, "Limits.Workers": {Limits: mcompress.Limits{Workers: -1}},
		"Balance": {Balance: "nodes"}, "Batch": {Batch: -1}, "Measure": {Measure: true},
		"Ranks excludes Stages": {Ranks: 2, Stages: 2}, "and Dims": {Ranks: 2, Dims: map[string]int64{"n": 1}},
	} {
		_, err := mcompress.Split(t.Context(), splitModel, t.TempDir(), o)
		var field *mcompress.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
