package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// listed are files of which names, digests, members and metadata are as a test says.
type listed struct {
	names   []string
	files   map[string]report.File
	packed  map[string][]report.File
	model   report.Model
	failing map[string]error // by method, or by the name of a file
}

func (l *listed) Names(context.Context) ([]string, error) { return l.names, l.failing["names"] }

func (l *listed) Digest(_ context.Context, name string) (string, int64, error) {
	if err := l.failing[name]; err != nil {
		return "", 0, err
	}
	f, ok := l.files[name]
	if !ok {
		return "", 0, fs.ErrNotExist
	}
	return f.SHA256, f.Bytes, nil
}

func (l *listed) Read(_ context.Context, name string) ([]byte, error) { return nil, l.failing[name] }

func (l *listed) Packed(_ context.Context, name string) ([]report.File, error) {
	return l.packed[name], l.failing["packed"]
}

func (l *listed) Model(context.Context, string) (report.Model, error) {
	return l.model, l.failing["metadata"]
}

// A document is a report as JSON.
type document map[string]any

// object is the value of a member, also of a list of which it is the first.
func (d document) object(path ...string) document {
	var v any = map[string]any(d)
	for _, key := range path {
		v = v.(map[string]any)[key]
		if list, ok := v.([]any); ok {
			v = list[0]
		}
	}
	return v.(map[string]any)
}

// quantized is a run that quantizes the fixture mlp.onnx in dir, and its first report.
func quantized(t *testing.T, dir string, o job.Options) (*job.Result, []byte) {
	t.Helper()
	model, err := os.ReadFile("../../fixtures/mlp.onnx")
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(dir, "mlp.onnx")
	if err := os.WriteFile(in, model, 0o666); err != nil {
		t.Fatal(err)
	}
	step, err := pass.NewStep(quantize.DynamicInt8{}.Method(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Input, o.Label, o.Steps, o.Digest = in, "int8", []pass.Options{step}, true
	res, err := job.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(res.Reports[0])
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

// comparison runs a step on a model in dir, and returns a comparison of what is there now with its report.
func comparison(t *testing.T, dir, model string, step pass.Options) func() *Result {
	t.Helper()
	if _, err := job.Run(t.Context(), job.Options{
		Input: filepath.Join(dir, model), Label: "run", Steps: []pass.Options{step}, Digest: true, Reports: []string{"json"},
		Output: filepath.Join(dir, "out.onnx"),
	}); err != nil {
		t.Fatal(err)
	}
	return func() *Result {
		text, err := Folder(dir).Read(t.Context(), "out.report.json")
		if err != nil {
			t.Fatal(err)
		}
		res, err := Verify(t.Context(), Folder(dir), "out.report.json", text, Limits{AllowRandomInputs: true})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// compressed are a quantized model with its source in the folder "run", and its report, without a verification.
func compressed(t *testing.T) (*listed, []byte) {
	t.Helper()
	dir := t.TempDir()
	res, text := quantized(t, dir, job.Options{Reports: []string{"json"}})
	l := &listed{files: map[string]report.File{}, packed: map[string][]report.File{}, failing: map[string]error{}}
	for _, f := range slices.Concat(res.Report.Result.Files, res.Report.Source.Files) {
		l.names, l.files["run/"+f.Name] = append(l.names, "run/"+f.Name), f
	}
	var err error
	if l.model, err = Folder(dir).Model(t.Context(), "mlp.int8.onnx"); err != nil {
		t.Fatal(err)
	}
	return l, text
}

// A report is compared with everything that it states of files. Each change of one of them, or of the report with a
// digest that is right, is found by its own comparison, and an error of reading is one of Verify.
func TestEachComparison(t *testing.T) {
	broken := errors.New("broken disk")
	const other = "0000000000000000000000000000000000000000000000000000000000000000"
	packed := func(l *listed, members ...string) {
		l.names = append(l.names, "run/mlp.int8.mcz")
		for _, name := range members {
			l.packed["run/mlp.int8.mcz"] = append(l.packed["run/mlp.int8.mcz"], l.files["run/"+name])
		}
	}
	without := func(l *listed, name string) {
		delete(l.files, name)
		l.names = slices.DeleteFunc(l.names, func(n string) bool { return n == name })
	}
	input := func(d document, name, sum string) {
		d.object("recipe")["inputs"] = []any{map[string]any{"option": "data", "name": name, "sha256": sum}}
	}
	all := "digest recipe mlp.int8.onnx mlp.onnx metadata graph figures"
	for name, c := range map[string]struct {
		change    func(l *listed, d document)
		limits    Limits
		mismatch  string // of all mismatches, the first; empty for none
		unchecked string
		checked   string // names of comparisons; empty for any
		model     string // empty for any
		err       error
	}{
		"unchanged": {checked: all, model: "run/mlp.int8.onnx"},
		"no digest": {change: func(_ *listed, d document) {
			d["digest"] = ""
		}, mismatch: "the report has no digest: it was made with --digest none"},
		"digest of the report": {change: func(_ *listed, d document) {
			d["digest"] = other
		}, mismatch: "run/mlp.int8.report.json: the digest is "},
		"dry run": {change: func(_ *listed, d document) {
			d.object("result")["planned"] = true
		}, mismatch: "the report is of a dry run: there is no model"},

		"content of the result": {change: func(_ *listed, d document) {
			d.object("result", "files")["sha256"] = other
		}, mismatch: "run/mlp.int8.onnx: the SHA-256 is "},
		"size of the result": {change: func(l *listed, _ document) {
			f := l.files["run/mlp.int8.onnx"]
			f.Bytes++
			l.files["run/mlp.int8.onnx"] = f
		}, mismatch: "bytes, the report has "},
		"an empty result": {change: func(_ *listed, d document) {
			d.object("result", "files")["bytes"] = 0
		}, mismatch: "bytes, the report has 0"},
		"no digest of the result": {change: func(_ *listed, d document) {
			delete(d.object("result", "files"), "sha256")
		}, mismatch: "the report has no SHA-256 of it"},
		"no result": {change: func(l *listed, _ document) {
			without(l, "run/mlp.int8.onnx")
		}, mismatch: "run/mlp.int8.onnx: no such file; the report names it"},
		"unreadable result": {change: func(l *listed, _ document) {
			l.failing["run/mlp.int8.onnx"] = broken
		}, err: broken},
		"content of the source": {change: func(_ *listed, d document) {
			d.object("source", "files")["sha256"] = other
		}, mismatch: "run/mlp.onnx: the SHA-256 is "},
		"no source": {change: func(l *listed, _ document) {
			without(l, "run/mlp.onnx")
		}, unchecked: "mlp.onnx: not here", checked: "digest recipe mlp.int8.onnx metadata graph figures"},
		"unreadable source": {change: func(l *listed, _ document) { l.failing["run/mlp.onnx"] = broken }, err: broken},
		"unreadable folder": {change: func(l *listed, _ document) { l.failing["names"] = broken }, err: broken},

		"digest of the recipe": {change: func(_ *listed, d document) {
			d.object("recipe")["sha256"] = other
		}, mismatch: "the digest of the recipe is "},
		"text of the recipe": {change: func(_ *listed, d document) {
			d.object("recipe")["text"] = "steps: []\n"
		}, mismatch: "the digest of the recipe is "},
		"no recipe": {change: func(_ *listed, d document) {
			delete(d, "recipe")
		}, mismatch: "metadata " + report.KeyRecipe},
		"an input of the recipe": {change: func(l *listed, d document) {
			input(d, "data.npz", other)
			l.files["run/data.npz"] = report.File{Name: "data.npz", Bytes: 5, SHA256: strings.Replace(other, "0", "1", 1)}
		}, mismatch: "run/data.npz: the SHA-256 is 1"},
		"no input of the recipe": {change: func(_ *listed, d document) {
			input(d, "data.npz", other)
		}, unchecked: "data.npz: not here"},
		"an unreadable input": {change: func(l *listed, d document) {
			input(d, "data.npz", other)
			l.failing["run/data.npz"] = broken
		}, err: broken},
		"a folder as input": {change: func(l *listed, d document) {
			input(d, "data", other)
			l.names = append(l.names, "run/data/a")
			l.files["run/data/a"] = report.File{SHA256: strings.Replace(other, "0", "1", 1)}
		}, mismatch: "run/data: the SHA-256 is "},
		"an unreadable folder as input": {change: func(l *listed, d document) {
			input(d, "data", other)
			l.names = append(l.names, "run/data/a")
			l.failing["run/data/a"] = broken
		}, err: broken},

		"version in the metadata": {change: func(l *listed, _ document) {
			l.model.IR.Meta = replaced(l.model.IR.Meta, report.KeyVersion)
		}, mismatch: "metadata " + report.KeyVersion + ` is "x"`},
		"recipe in the metadata": {change: func(l *listed, _ document) {
			l.model.IR.Meta = replaced(l.model.IR.Meta, report.KeyRecipe)
		}, mismatch: "metadata " + report.KeyRecipe + ` is "x"`},
		"source in the metadata": {change: func(l *listed, _ document) {
			l.model.IR.Meta = replaced(l.model.IR.Meta, report.KeySource)
		}, mismatch: "metadata " + report.KeySource + ` is "x"`},
		"no metadata": {change: func(l *listed, _ document) { l.model.IR.Meta = nil }, mismatch: `is "", the report has`},
		"metadata elsewhere": {change: func(l *listed, _ document) {
			l.failing["metadata"] = ErrAbsent
		}, unchecked: "metadata of the model: " + ErrAbsent.Error()},
		"unreadable metadata": {change: func(l *listed, _ document) { l.failing["metadata"] = broken }, err: broken},

		"packed": {change: func(l *listed, _ document) {
			packed(l, "mlp.int8.onnx")
			without(l, "run/mlp.int8.onnx")
		}, checked: "digest recipe run/mlp.int8.mcz mlp.onnx metadata graph figures", model: "run/mlp.int8.mcz"},
		"packed and not packed": {change: func(l *listed, _ document) {
			packed(l, "mlp.int8.onnx")
		}, checked: "digest recipe run/mlp.int8.mcz mlp.int8.onnx mlp.onnx metadata graph figures", model: "run/mlp.int8.onnx"},
		"packed another file": {change: func(l *listed, _ document) {
			packed(l, "mlp.onnx")
			without(l, "run/mlp.int8.onnx")
		}, mismatch: "run/mlp.int8.mcz: it has no file mlp.int8.onnx"},
		"packed other content": {change: func(l *listed, _ document) {
			packed(l, "mlp.int8.onnx")
			l.packed["run/mlp.int8.mcz"][0].SHA256 = other
			without(l, "run/mlp.int8.onnx")
		}, mismatch: "run/mlp.int8.mcz: mlp.int8.onnx: the SHA-256 is " + other},
		"packed elsewhere": {change: func(l *listed, _ document) {
			packed(l)
			l.failing["packed"] = ErrAbsent
			without(l, "run/mlp.int8.onnx")
		}, unchecked: "run/mlp.int8.mcz: " + ErrAbsent.Error()},
		"unreadable packed": {change: func(l *listed, _ document) { packed(l); l.failing["packed"] = broken }, err: broken},

		"a gate that holds": {limits: Limits{Gates: []report.Limit{{Name: "min-ratio", Bound: 1}}},
			checked: all + " gates"},
		"a gate that does not hold": {limits: Limits{Gates: []report.Limit{{Name: "min-ratio", Bound: 100}}},
			mismatch: "gate min-ratio did not hold: "},
		"a gate without its baseline": {limits: Limits{Gates: []report.Limit{{Name: "max-baseline-size-ratio", Bound: 1}}},
			unchecked: "gate max-baseline-size-ratio: the report has no baseline; name one with --baseline", checked: all},
		"a gate with its baseline": {limits: Limits{Gates: []report.Limit{{Name: "max-baseline-size-ratio", Bound: 1}},
			Baseline: &report.Baseline{Name: "small", Bytes: 1}}, mismatch: "gate max-baseline-size-ratio did not hold: "},
	} {
		t.Run(name, func(t *testing.T) {
			l, text := compressed(t)
			var d document
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				was := d["digest"]
				c.change(l, d)
				if d["digest"] == was {
					d["digest"] = digestOf(t, d)
				}
				if recipe, ok := d["recipe"].(map[string]any); ok && recipe["inputs"] != nil { // which is right for its inputs
					r, err := report.Read(bytes.NewReader(encoded(t, d)))
					if err != nil {
						t.Fatal(err)
					}
					if recipe["sha256"], err = r.Recipe.Sum(); err != nil {
						t.Fatal(err)
					}
					l.model.IR.Meta = append(l.model.IR.Meta, ir.Entry{Key: report.KeyRecipe, Value: recipe["sha256"].(string)})
					d["digest"] = digestOf(t, d)
				}
			}
			res, err := Verify(t.Context(), l, "run/mlp.int8.report.json", encoded(t, d), c.limits)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if c.mismatch == "" && !res.Matches() ||
				c.mismatch != "" && !slices.ContainsFunc(res.Mismatches, func(m string) bool {
					return strings.Contains(m, c.mismatch)
				}) {
				t.Errorf("mismatches %q, want %q", res.Mismatches, c.mismatch)
			}
			if got := strings.Join(res.Unchecked, "; "); got != c.unchecked {
				t.Errorf("unchecked %q, want %q", got, c.unchecked)
			}
			if got := strings.Join(res.Checked, " "); c.checked != "" && got != c.checked {
				t.Errorf("checked %q, want %q", got, c.checked)
			}
			if c.model != "" && (res.Model != c.model || !slices.Contains(res.Files, c.model)) {
				t.Errorf("model %s of %q, want %s", res.Model, res.Files, c.model)
			}
		})
	}
}

func encoded(t *testing.T, d document) []byte {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func digestOf(t *testing.T, d document) string {
	t.Helper()
	sum, err := report.Digest(encoded(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// replaced are entries of which that of a key has the value "x".
func replaced(entries []ir.Entry, key string) []ir.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].Key == key {
			entries[i].Value = "x"
		}
	}
	return entries
}

// The first line that differs is found, wherever it is, and ends of lines do not count.
func TestDifference(t *testing.T) {
	lines := []string{"a\n", "\n", "b\n", "c"}
	want := []byte(strings.Join(lines, ""))
	for i := range lines {
		for _, edit := range []string{"x" + lines[i], ""} {
			edited := slices.Clone(lines)
			edited[i] = edit
			if got := difference([]byte(strings.Join(edited, "")), want); got != i+1 {
				t.Errorf("line %d as %q: %d", i+1, edit, got)
			}
		}
	}
	for text, line := range map[string]int{string(want): 0, "a\r\n\r\nb\r\nc": 0, string(want) + "\n": 0,
		string(want) + "\nd": 5, "": 1} {
		if got := difference([]byte(text), want); got != line {
			t.Errorf("%q: line %d, want %d", text, got, line)
		}
		if got := difference(want, []byte(text)); got != line {
			t.Errorf("instead of %q: line %d, want %d", text, got, line)
		}
	}
}

// A pointer of Git LFS represents a file: its digest and size are known, its content is elsewhere. Anything else is a
// file of its own.
func TestFolderOfPointers(t *testing.T) {
	dir := t.TempDir()
	oid := strings.Repeat("ab", 32)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize 12345\n"
	extended := func(n int) string { // a pointer of n bytes
		return strings.Replace(pointer, "oid",
			"ext-0-x sha256:"+strings.Repeat("c", n-len(pointer)-len("ext-0-x sha256:\n"))+"\noid", 1)
	}
	for name, c := range map[string]struct {
		text    string
		pointer bool
	}{
		"pointer": {pointer, true}, "longest": {extended(maxPointer), true}, "long": {extended(maxPointer + 1), false},
		"text": {"text", false}, "empty": {"", false},
		"digits": {strings.Replace(pointer, "ab", "AB", 1), false}, "more": {pointer + "x", false},
		"huge": {strings.Replace(pointer, "12345", strings.Repeat("9", 30), 1), false},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := IsPointer(path); got != c.pointer {
			t.Errorf("%s: a pointer: %t", name, got)
		}
		sum, size, err := Folder(dir).Digest(t.Context(), name)
		want, bytes, _ := digest.File(t.Context(), path, nil)
		if c.pointer {
			want, bytes = oid, 12345
		}
		if err != nil || sum != want || size != bytes {
			t.Errorf("%s: %s, %d, %v", name, sum, size, err)
		}
		text, err := Folder(dir).Read(t.Context(), name)
		if c.pointer != errors.Is(err, ErrAbsent) || !c.pointer && string(text) != c.text {
			t.Errorf("%s: read %q, %v", name, text, err)
		}
		if _, err := Folder(dir).Model(t.Context(), name); err == nil || c.pointer != errors.Is(err, ErrAbsent) {
			t.Errorf("%s: model: %v", name, err)
		}
		if _, err := Folder(dir).Packed(t.Context(), name); err == nil || c.pointer != errors.Is(err, ErrAbsent) {
			t.Errorf("%s: packed: %v", name, err)
		}
	}
	if IsPointer(dir) || IsPointer(filepath.Join(dir, "none")) {
		t.Error("a folder is a pointer")
	}
	for _, name := range []string{"../text", "/text", "none"} {
		_, _, digest := Folder(dir).Digest(t.Context(), name)
		_, read := Folder(dir).Read(t.Context(), name)
		_, metadata := Folder(dir).Model(t.Context(), name)
		if digest == nil || read == nil || metadata == nil {
			t.Errorf("%s: %v, %v, %v", name, digest, read, metadata)
		}
	}
}

// The files in a packed model have the digests of their content.
func TestFilesInAPackedModel(t *testing.T) {
	model, err := os.ReadFile("../../fixtures/mlp.onnx")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := pack.Write(t.Context(), &out,
		[]pack.File{{Name: "mlp.onnx", Size: int64(len(model)), R: bytes.NewReader(model)}},
		pack.Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "mlp.mcz"), out.Bytes(), 0o666),
		os.WriteFile(filepath.Join(dir, "mlp.onnx"), model, 0o666)); err != nil {
		t.Fatal(err)
	}
	sum, size, err := Folder(dir).Digest(t.Context(), "mlp.onnx")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Folder(dir).Packed(t.Context(), "mlp.mcz")
	if want := []report.File{{Name: "mlp.onnx", Bytes: size, SHA256: sum}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Folder(dir).Packed(ended, "mlp.mcz"); err == nil {
		t.Error("an interrupted comparison has digests")
	}
}

// The files of an artifact have the digests of the registry, and only documents are downloaded.
func TestFilesOfAnArtifact(t *testing.T) {
	ref, err := registry.Parse("dir:" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := registry.Collect(t.Context(), "../../fixtures/mlp.onnx", registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Push(t.Context(), ref, a, registry.Options{}); err != nil {
		t.Fatal(err)
	}
	l, err := registry.List(t.Context(), ref, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var s Files = Stored{l}
	if names, err := s.Names(t.Context()); err != nil || !slices.Equal(names, []string{"mlp.onnx"}) {
		t.Errorf("names %q, %v", names, err)
	}
	sum, size, err := s.Digest(t.Context(), "mlp.onnx")
	if err != nil || sum != a.Files[0].SHA256 || size != a.Files[0].Size {
		t.Errorf("%s, %d, %v", sum, size, err)
	}
	if text, err := s.Read(t.Context(), "mlp.onnx"); err != nil || int64(len(text)) != size {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	_, _, digest := s.Digest(t.Context(), "none")
	_, read := s.Read(t.Context(), "none")
	if !errors.Is(digest, fs.ErrNotExist) || !errors.Is(read, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v, %v", digest, read)
	}
	_, packed := s.Packed(t.Context(), "mlp.onnx")
	_, metadata := s.Model(t.Context(), "mlp.onnx")
	if !errors.Is(packed, ErrAbsent) || !errors.Is(metadata, ErrAbsent) {
		t.Errorf("content that is not downloaded: %v, %v", packed, metadata)
	}
}
