package partition

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/partition"
)

// manifest is a valid one of two ranks: each has a file in both segments, between which a value is summed.
func manifest() *partition.ShardManifest {
	shard := func(rank int, file string, outputs []string, in ...partition.Operand) partition.Shard {
		return partition.Shard{Rank: rank, File: file, Parts: []partition.Part{{Name: file, Size: 1}}, Inputs: in, Outputs: outputs}
	}
	return &partition.ShardManifest{
		Version: ManifestVersion, Ranks: 2,
		Segments: []partition.Segment{
			{
				Shards: []partition.Shard{shard(0, "a0", []string{"sum", "own"}, partition.Operand{Name: "x"}),
					shard(1, "a1", []string{"sum", "own"}, partition.Operand{Name: "x"})},
				Reductions: []partition.Reduction{{Name: "sum", Operation: "sum"}},
			},
			{Shards: []partition.Shard{
				shard(0, "b0", []string{"part", "y"}, partition.Operand{Name: "sum", Reduced: true}, partition.Operand{Name: "own", From: "a0"}),
				shard(1, "b1", []string{"part"}, partition.Operand{Name: "own", From: "a1"}),
			}},
		},
		Outputs: []partition.Result{{Name: "y", From: "b0"}, {Name: "sum", Reduced: true},
			{Name: "part", Concat: []string{"b0", "b1"}, Axis: 1}},
	}
}

// A manifest names files of its folder, ranks that there are, and values that exist when they are read: one that does
// not is an error.
func TestCheckOfManifests(t *testing.T) {
	for want, change := range map[string]func(m *partition.ShardManifest){
		"":                                      func(*partition.ShardManifest) {},
		"version 2 of the manifest":             func(m *partition.ShardManifest) { m.Version = 2 },
		"not a manifest of stages or shards":    func(m *partition.ShardManifest) { m.Ranks = 0 },
		"not a manifest of stages or shards ":   func(m *partition.ShardManifest) { m.Ranks = maxRanks + 1 },
		"not a manifest of stages or shards  ":  func(m *partition.ShardManifest) { m.Segments = nil },
		"not a manifest of stages or shards   ": func(m *partition.ShardManifest) { m.Outputs = nil },
		`"a0" is not the name of a file of its own`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[1].File = "a0"
		},
		`"../a" is not the name of a file`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[1].File = "../a"
		},
		`"" is not the name of a file`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[0].Parts[0].Name = ""
		},
		`"d/a" is not the name of a file`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[0].Parts[0].Name = "d/a"
		},
		`".." is not the name of a file`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[0].Parts[0].Name = ".."
		},
		"a1: rank -1: there are 2": func(m *partition.ShardManifest) { m.Segments[0].Shards[1].Rank = -1 },
		"a1: rank 2: there are 2":  func(m *partition.ShardManifest) { m.Segments[0].Shards[1].Rank = 2 },
		"a1: rank 0: there are 2":  func(m *partition.ShardManifest) { m.Segments[0].Shards[1].Rank = 0 },
		`a0: input "x": no earlier reduction`: func(m *partition.ShardManifest) {
			m.Segments[0].Shards[0].Inputs[0].Reduced = true
		},
		`b0: input "own": a1 is the file of another`: func(m *partition.ShardManifest) {
			m.Segments[1].Shards[0].Inputs[1].From = "a1"
		},
		`b0: input "y": not an output of an earlier file "a0"`: func(m *partition.ShardManifest) {
			m.Segments[1].Shards[0].Inputs[1].Name = "y"
		},
		`operation "max" is not supported`: func(m *partition.ShardManifest) { m.Segments[0].Reductions[0].Operation = "max" },
		`reduction of "own`: func(m *partition.ShardManifest) {
			m.Segments[0].Reductions[0].Name = "own"
			m.Segments[0].Shards[1].Outputs = []string{"sum"}
		},
		`reduction of "sum`:                                    func(m *partition.ShardManifest) { m.Segments[0].Shards = nil },
		`output "own": no reduction`:                           func(m *partition.ShardManifest) { m.Outputs[1].Name = "own" },
		`output "part": axis -1`:                               func(m *partition.ShardManifest) { m.Outputs[2].Axis = -1 },
		`output "y": not an output of an earlier file "b1"`:    func(m *partition.ShardManifest) { m.Outputs[0].From = "b1" },
		`output "part": not an output of an earlier file "a0"`: func(m *partition.ShardManifest) { m.Outputs[2].Concat[1] = "a0" },
	} {
		m := manifest()
		change(m)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.shards.json")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := ReadManifest(path)
		if want = strings.TrimSpace(want); want == "" {
			if err != nil || len(got.Segments) != 2 || got.Ranks != 2 {
				t.Errorf("%+v, %v", got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	m := manifest()
	m.Ranks = maxRanks
	if err := checkManifest(m); err != nil {
		t.Error(err)
	}
}

// Stages are read as segments of one shard on one rank, whose files are in any of them.
func TestManifestOfStages(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) (*partition.ShardManifest, error) {
		path := filepath.Join(dir, "m.stages.json")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return ReadManifest(path)
	}
	const first = `{"file": "a", "parts": [{"name": "a", "bytes": 5}], "inputs": [{"name": "x"}], "outputs": ["h"]}`
	const second = `{"file": "b", "inputs": [{"name": "h", "from": "a"}, {"name": "x"}], "outputs": ["y"]}`
	m, err := read(`{"version": 1, "stages": [` + first + `, ` + second + `], "outputs": [{"name": "y", "from": "b"}]}`)
	if err != nil || m.Ranks != 1 || len(m.Segments) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	a, b := m.Segments[0].Shards[0], m.Segments[1].Shards[0]
	if a.File != "a" || len(a.Parts) != 1 || a.Parts[0].Size != 5 || b.Inputs[0] != (partition.Operand{Name: "h", From: "a"}) ||
		b.Inputs[1] != (partition.Operand{Name: "x"}) || b.Outputs[0] != "y" || b.Rank != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	for text, want := range map[string]string{
		`{"version": 1, "stages": [` + second +
			`], "outputs": [{"name": "y", "from": "b"}]}`: "not an output of an earlier file",
		`{`: "unexpected end of JSON input",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "not a manifest") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadManifest(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	large := filepath.Join(dir, "large")
	for size, want := range map[int64]string{maxManifest: "invalid character", maxManifest + 1: "not a manifest"} {
		if err := errors.Join(os.WriteFile(large, nil, 0o666), os.Truncate(large, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(large); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Files that are not those of the manifest are found, by their size and, where that is wanted, by their digest.
func TestCompareWithFiles(t *testing.T) {
	dir := t.TempDir()
	w, err := Write(t.Context(), filepath.Join("..", "..", "fixtures", "mlp.onnx"), dir, Options{Stages: 2, By: "weights"},
		onnx.SaveOptions{Digest: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(w.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	compare := func() (fast, whole error) {
		return CompareFiles(t.Context(), m, dir, false), CompareFiles(t.Context(), m, dir, true)
	}
	if fast, whole := compare(); fast != nil || whole != nil {
		t.Fatal(fast, whole)
	}
	last := m.Segments[1].Shards[0].Parts[0]
	path := filepath.Join(dir, last.Name)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content     []byte
		fast, whole string
	}{
		"byte": {append([]byte{content[0] + 1}, content[1:]...), "", "the digest is not that of the manifest"},
		"longer": {append(content[:len(content):len(content)], 0), "bytes, but the manifest has",
			"bytes, but the manifest has"},
		"missing": {nil, "no such file", "no such file"},
	} {
		if err := os.WriteFile(path, c.content, 0o666); err != nil {
			t.Fatal(err)
		}
		if c.content == nil {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		fast, whole := compare()
		if (fast == nil) != (c.fast == "") || fast != nil && !strings.Contains(fast.Error(), c.fast) || whole == nil ||
			!strings.Contains(whole.Error(), c.whole) {
			t.Errorf("%s: %v, %v", name, fast, whole)
		}
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CompareFiles(ended, m, dir, true); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	m.Segments[1].Shards[0].Parts[0].SHA256 = ""
	if _, whole := compare(); whole != nil {
		t.Errorf("without a digest: %v", whole)
	}
}

// Progress of all files ends at the bytes of their weights, but for a few that are part of the graph; the total of
// shards is a bound. After an error or an interruption there are no files.
func TestProgressAndErrorsOfWriting(t *testing.T) {
	fixture := filepath.Join("..", "..", "fixtures", "transformer.onnx")
	for name, write := range map[string]func(ctx context.Context, path, dir string, s onnx.SaveOptions) (int64, error){
		"stages": func(ctx context.Context, path, dir string, s onnx.SaveOptions) (int64, error) {
			w, err := Write(ctx, path, dir, Options{Stages: 3, By: "weights"}, s)
			if err != nil {
				return 0, err
			}
			return (&chain{plan: &Plan{Plan: w.Plan}}).weights(), nil
		},
		"shards": func(ctx context.Context, path, dir string, s onnx.SaveOptions) (int64, error) {
			w, err := WriteShards(ctx, path, dir, 2, s)
			if err != nil {
				return 0, err
			}
			return w.Shards.Weights.Stored, nil
		},
	} {
		dir := t.TempDir()
		var last, total int64
		steps := 0
		var mu sync.Mutex
		// from several goroutines, in any order
		weights, err := write(t.Context(), fixture, dir, onnx.SaveOptions{Progress: func(done, of int64) {
			mu.Lock()
			defer mu.Unlock()
			if of != total && total != 0 || done > of {
				t.Errorf("%s: %d of %d bytes after %d of %d", name, done, of, last, total)
			}
			last, total, steps = max(last, done), of, steps+1
		}})
		if err != nil || last > weights || last < weights*99/100 || total < weights || name == "stages" && total != weights ||
			steps < 3 {
			t.Errorf("%s: progress ends at %d of %d bytes after %d steps, weights have %d: %v", name, last, total, steps,
				weights, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		defer cancel()
		empty := t.TempDir()
		if _, err := write(ended, fixture, empty, onnx.SaveOptions{Progress: func(done, _ int64) {
			if done >= last {
				cancel() // all weights are written, the manifest is not
			}
		}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: interrupted: %v", name, err)
		}
		if _, err := write(t.Context(), filepath.Join(empty, "none.onnx"), empty, onnx.SaveOptions{}); !errors.Is(err,
			os.ErrNotExist) {
			t.Errorf("%s: of no model: %v", name, err)
		}
		if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
			t.Errorf("%s: left %v, %v", name, entries, err)
		}
		if _, err := write(t.Context(), fixture, filepath.Join(dir, "none", "none"), onnx.SaveOptions{}); err == nil {
			t.Errorf("%s: into no folder", name)
		}
	}
}
