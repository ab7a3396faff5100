package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report"
)

// known are files of which the digests are known, so that many reports are compared with them in little time.
type known struct {
	Folder
	files map[string]report.File
	meta  []ir.Entry
}

func (k known) Digest(_ context.Context, name string) (string, int64, error) {
	f, ok := k.files[name]
	if !ok {
		return "", 0, fs.ErrNotExist
	}
	return f.SHA256, f.Bytes, nil
}

func (k known) Metadata(context.Context, string) ([]ir.Entry, error) { return k.meta, nil }

// reported compresses a model with gates of each kind, and returns its files and its report.
func reported(t *testing.T) (known, []byte) {
	t.Helper()
	dir := t.TempDir()
	samples := filepath.Join(dir, "digits_test.npz")
	data, err := os.ReadFile("../../fixtures/digits_test.npz")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(samples, data, 0o666); err != nil {
		t.Fatal(err)
	}
	baseline := &report.Baseline{Name: "champion", Bytes: 1 << 20}
	res, text := quantized(t, dir, job.Options{
		Errors: true, Reports: []string{"json"}, Baseline: baseline,
		Gates: []report.Limit{
			{Name: "min-ratio", Bound: 2}, {Name: "require-coverage", Bound: 0.5}, {Name: "min-sqnr", Bound: 20},
			{Name: "min-cosine", Bound: 0.9},
			{Name: "min-agreement", Bound: 0.9}, {Name: "max-accuracy-drop", Bound: 0.5},
			{Name: "max-latency-ratio", Bound: 1e6}, {Name: "max-baseline-size-ratio", Bound: 1},
		},
		Verify: &job.Verification{Data: job.Data{Path: samples}, Force: true, Layers: true, Latency: true, Digest: true},
	})
	k := known{Folder(dir), map[string]report.File{}, nil}
	for _, f := range slices.Concat(res.Report.Result.Files, res.Report.Source.Files) {
		k.files[f.Name] = f
	}
	if k.meta, err = k.Folder.Metadata(t.Context(), filepath.Base(res.Output)); err != nil {
		t.Fatal(err)
	}
	return k, text
}

// Every edit of a report is a mismatch or an error, and none ends the program, also if the digest is that of the edited
// report.
func TestEveryEditOfAReport(t *testing.T) {
	files, text := reported(t)
	verify := func(text []byte) []string {
		t.Helper()
		res, err := Verify(t.Context(), files, "mlp.int8.report.json", text,
			Limits{Gates: []report.Limit{{Name: "max-baseline-metric-drop", Bound: 1e9}}, Baseline: nil})
		if err != nil {
			return []string{err.Error()}
		}
		return res.Mismatches
	}
	if got, err := Verify(t.Context(), files, "mlp.int8.report.json", text, Limits{}); err != nil || !got.Matches() {
		t.Fatalf("%+v, %v", got, err)
	}
	edits := 0
	edit(t, text, func(path string, edited []byte) {
		edits++
		res, err := Verify(t.Context(), files, "mlp.int8.report.json", edited, Limits{})
		if err == nil && res.Matches() {
			t.Errorf("%s: not noticed", path)
		}
		if sum, err := report.Digest(edited); err == nil {
			var document map[string]any
			if err := json.Unmarshal(edited, &document); err != nil {
				t.Fatal(err)
			}
			document["digest"] = sum
			again, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			verify(again)
		}
	})
	if edits < 1000 {
		t.Errorf("only %d edits", edits)
	}
}

// edit calls try with the document after one change: each value that is not in a long list is removed, or replaced by
// others.
func edit(t *testing.T, text []byte, try func(path string, edited []byte)) {
	t.Helper()
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	encode := func(path string) {
		edited, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		try(path, edited)
	}
	replacements := []any{nil, -1.0, 1e300, "", "x", true, []any{}, map[string]any{}, []any{nil}}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		for _, other := range replacements {
			if fmt.Sprint(other) == fmt.Sprint(v) {
				continue
			}
			set(other)
			encode(fmt.Sprintf("%s = %v", path, other))
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				value := v[key]
				delete(v, key)
				encode("without " + path + "." + key)
				walk(path+"."+key, value, func(x any) { v[key] = x })
			}
		case []any:
			for i := range min(len(v), 2) {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
			}
		}
	}
	for key, value := range document.(map[string]any) {
		walk(key, value, func(x any) { document.(map[string]any)[key] = x })
	}
}
