package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/pass"
)

// genai is a configuration with two models.
const genai = `{
  "model": {
    "eos_token_id": [1, 106],
    "decoder": {"filename": "text.onnx", "num_hidden_layers": 4, "sliding_window": {"layers": [0, 2, 3]}, "rope": 1e1000000},
    "vision": {"filename": "vision.onnx", "num_hidden_layers": 4}
  }
}
`

const hidden = `{"num_hidden_layers":4,"layer_types":["a","b","c","d"],"text_config":{"n_layer":4},"eos_token_id":[1,2,3,4],"hidden_size":4}`

// write makes files in a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// publish copies the folder of a model to that of a result.
func publish(t *testing.T, model, result string, removed []pass.RemovedLayers, compressed ...string) (*Folder, error) {
	t.Helper()
	f, err := Open(model, result, append(compressed, model))
	if err != nil || f == nil {
		return f, err
	}
	set := &atomicfile.Set{}
	defer set.Close()
	if err := f.Write(set, removed, nil); err != nil {
		return nil, err
	}
	return f, set.Publish("")
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFilesOfTheFolderAreCopied(t *testing.T) {
	from := write(t, map[string]string{
		genaiConfig: genai, "tokenizer.json": "{}", ".hidden": "x", "text.onnx": "\xff", "vision.onnx": "\xff", "text.int8.onnx": "\xff",
		"text.report.json": "{}", "README.md": "text",
	})
	if err := os.Mkdir(filepath.Join(from, "original"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(from, "README.md"), filepath.Join(from, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(from, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(maxSize+1), large.Close()); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	f, err := publish(t, filepath.Join(from, "text.onnx"), filepath.Join(to, "text.q.onnx"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"LICENSE", "README.md", genaiConfig, "tokenizer.json", "vision.onnx"}; !slices.Equal(f.Copied, want) {
		t.Errorf("copied %q, want %q", f.Copied, want)
	}
	if want := []string{"model.safetensors", "original"}; !slices.Equal(f.Omitted, want) {
		t.Errorf("omitted %q, want %q", f.Omitted, want)
	}
	if got, want := read(t, to, genaiConfig), strings.Replace(genai, "text.onnx", "text.q.onnx", 1); got != want {
		t.Errorf("configuration: %s", got)
	}
	if st, err := os.Lstat(filepath.Join(to, "LICENSE")); err != nil || !st.Mode().IsRegular() || read(t, to, "LICENSE") != "text" {
		t.Errorf("LICENSE is no copy of the file that the link names: %v, %v", st, err)
	}
}

// Each model of a folder has a section of the configuration; a second result of the same model would replace the first one.
func TestModelsOfAFolder(t *testing.T) {
	from, to := write(t, map[string]string{genaiConfig: genai, config: hidden, "text.onnx": "", "vision.onnx": ""}), t.TempDir()
	text, vision := filepath.Join(from, "text.onnx"), filepath.Join(from, "vision.onnx")
	removed := []pass.RemovedLayers{{Layers: 4, Removed: []int{1, 2}}}
	for range 2 { // the same again changes nothing
		if _, err := publish(t, text, filepath.Join(to, "text.q.onnx"), removed, vision); err != nil {
			t.Fatal(err)
		}
		if _, err := publish(t, vision, filepath.Join(to, "vision.q.onnx"), nil, text); err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("text.onnx", "text.q.onnx", "vision.onnx", "vision.q.onnx", `q.onnx", "num_hidden_layers": 4, "s`, `q.onnx", "num_hidden_layers": 2, "s`, "[0, 2, 3]", "[0, 1]").Replace(genai)
		want = strings.Replace(want, `"text.q.onnx", "num_hidden_layers": 4`, `"text.q.onnx", "num_hidden_layers": 2`, 1)
		if got := read(t, to, genaiConfig); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := read(t, to, config); got != hidden {
			t.Errorf("%s follows one of two models", got)
		}
	}
	for _, name := range []string{"text.onnx", "vision.onnx"} {
		if _, err := os.Stat(filepath.Join(to, name)); err == nil {
			t.Errorf("%s was copied with its compressed model", name)
		}
	}
	var wrong *pass.OptionError
	if _, err := publish(t, text, filepath.Join(to, "text.other.onnx"), nil, vision); !errors.As(err, &wrong) {
		t.Errorf("another result of the same model: %v", err)
	}
}

func TestConfigurationFollowsRemovedLayers(t *testing.T) {
	from, to := write(t, map[string]string{config: hidden, "m.onnx": ""}), t.TempDir()
	removed := []pass.RemovedLayers{{Layers: 4, Removed: []int{1, 2}}, {Layers: 3, Removed: []int{0}}}
	if _, err := publish(t, filepath.Join(from, "m.onnx"), filepath.Join(to, "m.layers.onnx"), removed); err != nil {
		t.Fatal(err)
	}
	want := `{"num_hidden_layers":2,"layer_types":["a","d"],"text_config":{"n_layer":2},"eos_token_id":[1,2,3,4],"hidden_size":4}`
	if got := read(t, to, config); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Numbers of layers, and numbers of first layers, follow the layers that stay; lists with an item for each layer lose those of removed ones.
func TestNumbersOfLayersFollowRemovedLayers(t *testing.T) {
	removed := pass.RemovedLayers{Layers: 6, Removed: []int{1, 3}}
	for text, want := range map[string]string{
		`{"mlp_only_layers": [0, 1, 4]}`:                       `{"mlp_only_layers": [0, 2]}`,
		`{"mlp_only_layers": [0, 1, 2, 3, 4, 5]}`:              `{"mlp_only_layers": [0, 1, 2, 3]}`,
		`{"mlp_only_layers": []}`:                              `{"mlp_only_layers": []}`,
		`{"text_config": {"moe_layers": [1,3,5]}}`:             `{"text_config": {"moe_layers": [3]}}`,
		`{"cross_attention_layers": [3]}`:                      `{"cross_attention_layers": []}`,
		`{"no_rope_layers": [1, 1, 1, 0, 1, 0]}`:               `{"no_rope_layers": [1, 1, 1, 0]}`,
		`{"layer_types": ["a", "b", "c", "d", "e", "f"]}`:      `{"layer_types": ["a", "c", "e", "f"]}`,
		`{"max_window_layers": 4, "first_k_dense_replace": 1}`: `{"max_window_layers": 2, "first_k_dense_replace": 1}`,
		`{"max_window_layers": 28}`:                            `{"max_window_layers": 26}`,
		`{"max_window_layers": null}`:                          `{"max_window_layers": null}`,
	} {
		got, err := withoutLayers([]byte(text), nil, removed)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
		before, err := parse([]byte(text))
		after, err2 := parse(got)
		if err != nil || err2 != nil || strings.Contains(text, "_layers\"") && !before.equal(after) {
			t.Errorf("%s and %s are of different models: %v, %v", text, got, err, err2)
		}
	}
}

// Keys about every n-th layer are reported, as they may not hold without the removed layers, unless a list of layers counts instead.
func TestIntervalsOfLayersAreReported(t *testing.T) {
	for text, want := range map[string][]string{
		`{"num_hidden_layers":4,"no_rope_layer_interval":4}`:                                            {"no_rope_layer_interval"},
		`{"num_hidden_layers":4,"no_rope_layer_interval":4,"no_rope_layers":[1,1,1,0]}`:                 nil,
		`{"num_hidden_layers":4,"no_rope_layer_interval":4,"no_rope_layers":null}`:                      {"no_rope_layer_interval"},
		`{"text_config":{"full_attention_interval":2,"decoder_sparse_step":2,"layer_types":["a","b"]}}`: {"decoder_sparse_step"},
		`{"decoder_sparse_step":1}`: nil,
	} {
		from, to := write(t, map[string]string{config: text, "m.onnx": ""}), t.TempDir()
		for _, removed := range [][]pass.RemovedLayers{{{Layers: 4, Removed: []int{1}}, {Layers: 3, Removed: []int{0}}}, nil} {
			f, err := publish(t, filepath.Join(from, "m.onnx"), filepath.Join(to, "m.layers.onnx"), removed)
			if err != nil {
				t.Fatal(err)
			}
			if removed == nil {
				want = nil
			}
			if !slices.Equal(f.Intervals, want) {
				t.Errorf("%s without %v: got %v, want %v", text, removed, f.Intervals, want)
			}
			to = t.TempDir()
		}
	}
}

func TestNothingIsReplaced(t *testing.T) {
	model := map[string]string{config: hidden, "vocab.txt": "a\nb\n", "m.onnx": ""}
	for name, there := range map[string]map[string]string{
		"other configuration": {config: strings.Replace(hidden, `"hidden_size":4`, `"hidden_size":8`, 1)},
		"other vocabulary":    {"vocab.txt": "a\nc\n"},
		"longer vocabulary":   {"vocab.txt": "a\nb\nc\n"},
	} {
		to := write(t, there)
		var wrong *pass.OptionError
		if _, err := publish(t, filepath.Join(write(t, model), "m.onnx"), filepath.Join(to, "m.q.onnx"), nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
		for file, text := range there {
			if read(t, to, file) != text {
				t.Errorf("%s: %s was replaced", name, file)
			}
		}
	}
	link := t.TempDir()
	if err := os.Symlink(filepath.Join(link, "elsewhere"), filepath.Join(link, "vocab.txt")); err != nil {
		t.Fatal(err)
	}
	var target *atomicfile.TargetError
	if _, err := publish(t, filepath.Join(write(t, model), "m.onnx"), filepath.Join(link, "m.q.onnx"), nil); !errors.As(err, &target) {
		t.Errorf("a link in the folder: %v", err)
	}
	same := write(t, model)
	if f, err := publish(t, filepath.Join(same, "m.onnx"), filepath.Join(same, "m.q.onnx"), nil); f != nil || err != nil {
		t.Errorf("the model's own folder: %v, %v", f, err)
	}
}

func TestMalformedConfiguration(t *testing.T) {
	for _, text := range []string{"", "{", `{"a":1}}`, strings.Repeat("[", 1<<20), "[" + strings.Repeat(" ", maxConfig)} {
		from := write(t, map[string]string{config: text, "m.onnx": ""})
		if _, err := publish(t, filepath.Join(from, "m.onnx"), filepath.Join(t.TempDir(), "m.q.onnx"), nil); err == nil || !strings.Contains(err.Error(), config) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Configuration is nested up to a limit, which is an error.
func TestNestingIsBounded(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := parse(nested(maxNesting)); err != nil {
		t.Errorf("%d levels: %v", maxNesting, err)
	}
	if _, err := parse(nested(maxNesting + 1)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("nested deeper than %d levels", maxNesting)) {
		t.Errorf("more levels: %v", err)
	}
}

// Numbers that pruning changes follow, with the size of a head where it would be computed from their number. The same again changes nothing.
func TestNumbersOfHeads(t *testing.T) {
	const before = `{"num_attention_heads": 8, "hidden_size": 64, "intermediate_size": 256, "num_key_value_heads": 2
}`
	from, to := write(t, map[string]string{config: before, "model.onnx": ""}), t.TempDir()
	model, result := filepath.Join(from, "model.onnx"), filepath.Join(to, "model.onnx")
	values := []pass.ConfigValue{
		{Name: pass.AttentionHeads, From: 8, To: []int{4}, HeadSize: 8}, {Name: pass.KeyValueHeads, From: 2, To: []int{1}},
		{Name: pass.IntermediateSize, From: 256, To: []int{100, 128}},
	}
	const want = `{"num_attention_heads": 4, "head_dim": 8, "hidden_size": 64, "intermediate_size": 256, "num_key_value_heads": 1
}`
	for range 2 {
		f, err := Open(model, result, []string{model})
		if err != nil {
			t.Fatal(err)
		}
		set := &atomicfile.Set{}
		if err := errors.Join(f.Write(set, nil, values), set.Publish("")); err != nil {
			t.Fatal(err)
		}
		if got := read(t, to, config); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		set.Close()
	}
}
