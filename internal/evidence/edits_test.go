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
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/report"
)

// known are files of which the digests are known, so that many reports are compared with them in little time.
type known struct {
	Folder
	files map[string]report.File
	model report.Model
}

func (k known) Digest(_ context.Context, name string) (string, int64, error) {
	f, ok := k.files[name]
	if !ok {
		return "", 0, fs.ErrNotExist
	}
	return f.SHA256, f.Bytes, nil
}

func (k known) Model(context.Context, string) (report.Model, error) { return k.model, nil }

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
	k := known{Folder(dir), map[string]report.File{}, report.Model{}}
	for _, f := range slices.Concat(res.Report.Result.Files, res.Report.Source.Files) {
		k.files[f.Name] = f
	}
	if k.model, err = k.Folder.Model(t.Context(), filepath.Base(res.Output)); err != nil {
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

// A report that is edited and has the digest of the edit does not match: its figures have ranges and agree with each
// other, and the model has the metadata and the weights that it speaks of.
func TestForgedReports(t *testing.T) {
	files, text := reported(t)
	list := func(d document, key string) []any { return d[key].([]any) }
	output := func(d document) document { return d.object("verification", "outputs") }
	none := map[string]any{"changed_bytes": 0, "counted_bytes": 0, "share": 0}
	for name, c := range map[string]struct {
		edit func(d document)
		want string
	}{
		"cosine above 1":     {func(d document) { output(d).object("errors")["cosine"] = 3 }, "cosine is 3, not within -1 and 1"},
		"cosine of a module": {func(d document) { d.object("modules", "error")["cosine"] = -2 }, "cosine is -2"},
		"better SQNR":        {func(d document) { output(d).object("errors")["sqnr_db"] = 90 }, "has no SQNR of 90 dB"},
		"negative error":     {func(d document) { output(d).object("errors")["max_abs"] = -1 }, "max_abs is -1"},
		"agreement above 1":  {func(d document) { output(d)["agreement"] = 1.5 }, "agreement is 1.5"},
		"accuracy above 1":   {func(d document) { d.object("verification", "accuracy")["after"] = 1.25 }, "after is 1.25"},
		"exact with errors":  {func(d document) { output(d).object("errors")["exact"] = true }, "recorded as exact"},
		"negative elements":  {func(d document) { output(d).object("errors")["elements"] = -1 }, "elements is -1"},
		"negative samples":   {func(d document) { d.object("verification", "data")["samples"] = -8 }, "samples is -8"},
		"negative time":      {func(d document) { d.object("verification", "latency")["after_seconds"] = -1 }, "after_seconds is -1"},
		"negative size":      {func(d document) { d.object("weights", "bytes")["after"] = -1 }, "bytes.after is -1"},
		"other type":         {func(d document) { d.object("weights")["dtype"] = "int8" }, "in the ledger float"},
		"other methods":      {func(d document) { d.object("weights")["methods"] = []any{"a", "b", "c"} }, "methods and"},
		"other parameters":   {func(d document) { d.object("totals", "parameters")["after"] = 7 }, "parameters, the report has 7"},
		"other types":        {func(d document) { d.object("totals", "dtypes")["dtype"] = "int4" }, "bytes by type"},
		"other tensor bytes": {func(d document) { d.object("totals", "tensor_bytes")["after"] = 7 }, "its types have"},
		"other opset":        {func(d document) { d.object("result", "opsets")["version"] = 3 }, "opsets are"},
		"no ledger":          {func(d document) { d["ledger"] = []any{} }, "is in no row of the ledger"},
		"no recipe":          {func(d document) { delete(d, "recipe") }, "metadata " + report.KeyRecipe},
		"a row less":         {func(d document) { d["ledger"] = list(d, "ledger")[1:] }, "is in no row of the ledger"},
		"a weight less":      {func(d document) { d["weights"] = list(d, "weights")[1:] }, "is not in the list of weights"},
		"no weights, no steps": {func(d document) {
			d["ledger"], d["weights"], d["coverage"] = []any{}, []any{}, none
			delete(d, "modules")
		}, "is in no row of the ledger"},
		"another file version": {func(d document) { d.object("tool")["version"] = "v9" }, "metadata " + report.KeyVersion},
	} {
		t.Run(name, func(t *testing.T) {
			var d document
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			c.edit(d)
			d["digest"] = digestOf(t, d)
			res, err := Verify(t.Context(), files, "mlp.int8.report.json", encoded(t, d), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(res.Mismatches, "\n"), c.want) {
				t.Errorf("mismatches %q, want %q", res.Mismatches, c.want)
			}
		})
	}
}
