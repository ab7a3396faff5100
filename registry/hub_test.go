package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// compressed returns a quantized fixture with its reports.
func compressed(t *testing.T, fixture, output string) *registry.Artifact {
	t.Helper()
	model := filepath.Join(t.TempDir(), output)
	_, err := job.Run(t.Context(), job.Options{
		Input: filepath.Join("..", "fixtures", fixture), Output: model, Steps: []pass.Options{&quantize.WeightInt8{}},
		Digest: true, Errors: true,
		Reports: []string{"json", "md", "html", "cyclonedx"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := registry.Collect(t.Context(), model, registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sortedNames(files []registry.File) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.Name)
	}
	slices.Sort(list)
	return list
}

// The model becomes model.onnx, and its reports are those of a run with that output. huggingface_hub uploads all files
// and reads the card.
func TestHubOfAModel(t *testing.T) {
	w := conform.Start(t)
	ref := registrytest.Parse(t, "hf:"+filepath.Join(t.TempDir(), "repository"))
	o := registry.Options{Card: report.Card{BaseModel: "owner/name", PipelineTag: "image-classification"}}
	p, err := registry.Push(t.Context(), ref, compressed(t, "mlp.onnx", "small.onnx"), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"README.md", "onnx/model.cdx.json", "onnx/model.onnx", "onnx/model.report.json",
		"onnx/model.report.md"}
	if got := sortedNames(p.Files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	uploaded, err := w.HubUpload(ref.Name)
	if err != nil || !slices.Equal(uploaded, want) {
		t.Errorf("uploaded are %q, %v", uploaded, err)
	}
	direct := compressed(t, "mlp.onnx", "model.onnx")
	// it has no base model
	direct.Files = slices.DeleteFunc(direct.Files, func(f registry.File) bool { return f.Role == registry.BOM })
	for _, f := range direct.Files {
		if f.Role != registry.ReportPage &&
			registrytest.Read(t, f.Path) != registrytest.Read(t, filepath.Join(ref.Name, "onnx", f.Name)) {
			t.Errorf("%s differs from that of a run with this output", f.Name)
		}
	}
	if text := registrytest.Read(t, filepath.Join(ref.Name, "README.md")); !strings.Contains(text,
		`InferenceSession("onnx/model.onnx")`) {
		t.Errorf("the card does not load the model from its path in the repository: %s", text)
	}
	card, err := w.ModelCard(registrytest.Read(t, filepath.Join(ref.Name, "README.md")))
	if err != nil || card.BaseModel != "owner/name" || card.Relation != "quantized" ||
		card.PipelineTag != "image-classification" {
		t.Errorf("%+v, %v", card, err)
	}
	if s, err := registry.List(t.Context(), ref, o); err != nil || len(s.Files) != len(want)-1 {
		t.Errorf("%+v, %v", s, err)
	}
	if p, err = registry.Push(t.Context(), ref, direct, o); err != nil || p.Uploaded != 0 {
		t.Errorf("second push: %+v, %v", p, err)
	}
	var conflict *registry.ConflictError
	if _, err := registry.Push(t.Context(), ref, direct, registry.Options{}); !errors.As(err, &conflict) {
		t.Errorf("another card: %v", err)
	}
}

// Names that the model contains, that transformers.js loads or that are signed stay; the page with times is left out,
// and an existing card has the base model.
func TestHubKeepsNames(t *testing.T) {
	for _, c := range []struct{ fixture, output, want string }{
		{"external.onnx", "e.onnx", "README.md onnx/e.onnx onnx/e.onnx.data onnx/e.report.json onnx/e.report.md"},
		{"mlp.onnx", "model_q4.onnx", "README.md onnx/model_q4.onnx onnx/model_q4.report.json onnx/model_q4.report.md"},
		{"mlp.onnx", "signed.onnx",
			"README.md onnx/signed.onnx onnx/signed.report.json onnx/signed.report.md onnx/signed.sig"},
	} {
		a := compressed(t, c.fixture, c.output)
		a.Files = slices.DeleteFunc(a.Files, func(f registry.File) bool { return f.Role == registry.BOM })
		more := map[string]string{"x.card.md": "---\nbase_model: a/b\npipeline_tag: other\n---\ntext"}
		if c.output == "signed.onnx" {
			more["signed.sig"] = "{}"
		}
		dir := registrytest.Written(t, more)
		for name := range more {
			f := registry.File{Name: name, Path: filepath.Join(dir, name), Role: registry.Card}
			if name == "signed.sig" {
				f.Role = registry.Signature
			}
			f.Size, f.SHA256 = int64(len(more[name])), registrytest.Sum([]byte(more[name]))
			a.Files = append(a.Files, f)
		}
		to := t.TempDir()
		p, err := registry.Push(t.Context(), registrytest.Parse(t, "hf:"+to), a, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sortedNames(p.Files), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.output, got, c.want)
		}
		if text := registrytest.Read(t, filepath.Join(to, "README.md")); !strings.HasPrefix(text,
			"---\nbase_model: a/b\nbase_model_relation: quantized\n") {
			t.Errorf("%s: %.200s", c.output, text)
		}
	}
}

// A repository of variants has the sources, the variants with their reports, the configuration and one card of all
// variants. What is hidden, the source's card, and what else is next to the models is left out.
func TestHubOfVariants(t *testing.T) {
	dir := registrytest.Written(t, map[string]string{
		"config.json": "{}", "tokenizer/vocab.txt": "a", "tokenizer/README.md": "of the tokenizer", ".gitattributes": "",
		".git/config": "", "tokenizer/.cache/x": "", "README.md": "of the source",
		"onnx/model.onnx": registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx")), "onnx/notes.txt": "",
		"onnx/model.card.md": "text",
	})
	source := filepath.Join(dir, "onnx", "model.onnx")
	var variants []string
	for i, name := range []string{"model_q8.onnx", "model_q4.onnx"} {
		path := filepath.Join(dir, "onnx", name)
		variants = append(variants, path)
		if _, err := job.Run(t.Context(), job.Options{
			Input: source, Output: path, Steps: []pass.Options{&quantize.WeightInt8{ReduceRange: i == 1}}, Digest: true,
			Errors: true, Reports: []string{"json", "html"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir()
	push := func(dir string, variants []string) (*registry.Pushed, error) {
		return registry.PushVariants(t.Context(), registrytest.Parse(t, "hf:"+to), dir, []string{source}, variants,
			registry.Options{Card: report.Card{BaseModel: "a/b", DTypes: []string{"q8", "q4"}}})
	}
	p, err := push(dir, variants)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"README.md", "config.json", "onnx/model.onnx", "onnx/model_q4.onnx", "onnx/model_q4.report.json",
		"onnx/model_q8.onnx", "onnx/model_q8.report.json", "tokenizer/README.md", "tokenizer/vocab.txt"}
	if got := sortedNames(p.Files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range want[1:] {
		if registrytest.Read(t, filepath.Join(to, name)) != registrytest.Read(t, filepath.Join(dir, name)) {
			t.Errorf("%s has other content", name)
		}
	}
	card := registrytest.Read(t, filepath.Join(to, "README.md"))
	for _, part := range []string{"base_model: a/b\n", "| `model_q8.onnx` | `q8` |", "| `model_q4.onnx` | `q4` |",
		"`onnx/model_q4.onnx`"} {
		if !strings.Contains(card, part) {
			t.Errorf("the card has no %s: %s", part, card)
		}
	}
	for what, err := range map[string]error{
		"no folder": func() error { _, err := push(filepath.Join(dir, "none"), variants); return err }(),
		"no model":  func() error { _, err := push(dir, []string{filepath.Join(dir, "none.onnx")}); return err }(),
		"no report": func() error { _, err := push(dir, []string{source}); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: that is no error", what)
		}
	}
}

// Reports and a card that cannot be written are errors, not fewer files.
func TestHubOnAFullDisk(t *testing.T) {
	for _, name := range []string{"small.onnx", "model.onnx"} { // whose reports are made anew, and only the card
		n, err := registry.HubFiles(t.Context(), compressed(t, "mlp.onnx", name), filepath.Join(t.TempDir(), "none"))
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %d files, %v", name, n, err)
		}
	}
	a := compressed(t, "mlp.onnx", "model.onnx")
	model, _ := a.Model()
	for temporary, missing := range map[string]bool{t.TempDir(): false, filepath.Join(t.TempDir(), "none"): true} {
		for _, name := range []string{"TMPDIR", "TMP"} { // of Unix and of Windows
			t.Setenv(name, temporary)
		}
		to := registrytest.Parse(t, "hf:"+t.TempDir())
		_, one := registry.Push(t.Context(), to, a, registry.Options{})
		_, variants := registry.PushVariants(t.Context(), to, t.TempDir(), nil, []string{model.Path},
			registry.Options{Overwrite: true})
		if missing != errors.Is(one, os.ErrNotExist) || missing != errors.Is(variants, os.ErrNotExist) ||
			!missing && errors.Join(one, variants) != nil {
			t.Errorf("got %v, %v", one, variants)
		}
		if left, err := os.ReadDir(temporary); len(left) > 0 || missing != errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

func TestHubRequiresAReport(t *testing.T) {
	to := filepath.Join(t.TempDir(), "new")
	var content *registry.ContentError
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "hf:"+to), registrytest.Fixture(t, "mlp"),
		registry.Options{}); !errors.As(err, &content) ||
		!strings.Contains(err.Error(), "without a report (NAME.report.json) there is no model card") {
		t.Errorf("got %v", err)
	}
	// The report of a result of several files has no form for a model of another name.
	a := registrytest.Fixture(t, "mlp")
	report := registry.File{Name: "mlp.report.json",
		Path: filepath.Join(registrytest.Written(t,
			map[string]string{"r": `{"schema_version": 3, "source": {"files": [{"name": "s"}]}, "result": {"files": [{"name": "a"}, {"name": "b"}]}}`}), "r"), Role: registry.ReportJSON}
	a.Files = append(a.Files, report)
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "hf:"+to), a, registry.Options{}); err == nil ||
		!strings.Contains(err.Error(), "has no other name") || len(registrytest.Visible(t, to)) > 0 {
		t.Errorf("got %v", err)
	}
	if _, err := registry.PushVariants(t.Context(), registrytest.Parse(t, "dir:"+to), "", nil, nil,
		registry.Options{}); err == nil {
		t.Error("variants in a folder of another kind")
	}
	if _, err := registry.List(t.Context(), registrytest.Parse(t, "hf:"+t.TempDir()), registry.Options{}); err == nil {
		t.Error("a folder without models is listed")
	}
}
