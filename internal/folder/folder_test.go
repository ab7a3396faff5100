package folder

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
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
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
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
		genaiConfig: genai, "tokenizer.json": "{}", ".hidden": "x", "text.onnx": "\xff", "vision.onnx": "\xff",
		"text.int8.onnx":   "\xff",
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
	if want := []string{"LICENSE", "README.md", genaiConfig, "tokenizer.json", "vision.onnx"}; !slices.Equal(f.Copied,
		want) {
		t.Errorf("copied %q, want %q", f.Copied, want)
	}
	if want := []string{"model.safetensors", "original"}; !slices.Equal(f.Omitted, want) {
		t.Errorf("omitted %q, want %q", f.Omitted, want)
	}
	if got, want := read(t, to, genaiConfig), strings.Replace(genai, "text.onnx", "text.q.onnx", 1); got != want {
		t.Errorf("configuration: %s", got)
	}
	if st, err := os.Lstat(filepath.Join(to, "LICENSE")); err != nil || !st.Mode().IsRegular() ||
		read(t, to, "LICENSE") != "text" {
		t.Errorf("LICENSE is no copy of the file that the link names: %v, %v", st, err)
	}
}

// Each model of a folder has a section of the configuration; a second result of the same model would replace the first
// one.
func TestModelsOfAFolder(t *testing.T) {
	from, to := write(t, map[string]string{genaiConfig: genai, config: hidden, "text.onnx": "", "vision.onnx": ""}),
		t.TempDir()
	text, vision := filepath.Join(from, "text.onnx"), filepath.Join(from, "vision.onnx")
	removed := []pass.RemovedLayers{{Layers: 4, Removed: []int{1, 2}}}
	for range 2 { // the same again changes nothing
		if _, err := publish(t, text, filepath.Join(to, "text.q.onnx"), removed, vision); err != nil {
			t.Fatal(err)
		}
		if _, err := publish(t, vision, filepath.Join(to, "vision.q.onnx"), nil, text); err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("text.onnx", "text.q.onnx", "vision.onnx", "vision.q.onnx",
			`q.onnx", "num_hidden_layers": 4, "s`, `q.onnx", "num_hidden_layers": 2, "s`, "[0, 2, 3]", "[0, 1]").Replace(genai)
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

// Numbers of layers, and numbers of first layers, follow the layers that stay; lists with an item for each layer lose
// those of removed ones.
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
		before, err := parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := before.adapt(nil, "m.onnx", changes([]pass.RemovedLayers{removed}, nil)[0]).result()
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		after, err2 := parse(got)
		if err != nil || err2 != nil || strings.Contains(text, "_layers\"") && !before.equal(after) {
			t.Errorf("%s and %s are of different models: %v, %v", text, got, err, err2)
		}
	}
}

// Keys about every n-th layer are reported, as they may not hold without the removed layers, unless a list of layers
// counts instead.
func TestIntervalsOfLayersAreReported(t *testing.T) {
	for text, want := range map[string][]string{
		`{"num_hidden_layers":4,"no_rope_layer_interval":4}`:                                            {"no_rope_layer_interval"},
		`{"num_hidden_layers":4,"no_rope_layer_interval":4,"no_rope_layers":[1,1,1,0]}`:                 nil,
		`{"num_hidden_layers":4,"no_rope_layer_interval":4,"no_rope_layers":null}`:                      {"no_rope_layer_interval"},
		`{"text_config":{"full_attention_interval":2,"decoder_sparse_step":2,"layer_types":["a","b"]}}`: {"decoder_sparse_step", "num_hidden_layers"},
		`{"decoder_sparse_step":1}`: {"num_hidden_layers"},
	} {
		from, to := write(t, map[string]string{config: text, "m.onnx": ""}), t.TempDir()
		for _, removed := range [][]pass.RemovedLayers{{{Layers: 4, Removed: []int{1}}, {Layers: 3, Removed: []int{0}}},
			nil} {
			f, err := publish(t, filepath.Join(from, "m.onnx"), filepath.Join(to, "m.layers.onnx"), removed)
			if err != nil {
				t.Fatal(err)
			}
			if removed == nil {
				want = nil
			}
			if !slices.Equal(f.Stale, want) {
				t.Errorf("%s without %v: got %v, want %v", text, removed, f.Stale, want)
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
		if _, err := publish(t, filepath.Join(write(t, model), "m.onnx"), filepath.Join(to, "m.q.onnx"), nil); !errors.As(err,
			&wrong) {
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
	if _, err := publish(t, filepath.Join(write(t, model), "m.onnx"), filepath.Join(link, "m.q.onnx"),
		nil); !errors.As(err, &target) {
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
		if _, err := publish(t, filepath.Join(from, "m.onnx"), filepath.Join(t.TempDir(), "m.q.onnx"), nil); err == nil ||
			!strings.Contains(err.Error(), config) {
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
	if _, err := parse(nested(maxNesting + 1)); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("nested deeper than %d levels", maxNesting)) {
		t.Errorf("more levels: %v", err)
	}
}

// The memory of a value does not depend on its depth, and edits take time in proportion to the values.
func TestConfigurationTakesLinearMemoryAndTime(t *testing.T) {
	const values = 100_000
	for _, text := range []string{
		"[" + strings.Repeat("0,", values) + "0]",
		strings.Repeat(`{"layer":`, 90) + "[" + strings.Repeat("0,", values) + "0]" + strings.Repeat("}", 90),
	} {
		bytes := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		if each := bytes / values; each > 200 {
			t.Errorf("%.20s: %d bytes for each value", text, each)
		}
	}
	c, err := parse([]byte("[" + strings.Repeat(`{"filename":"m.onnx"},`, values) + `{"filename":"n.onnx"}]`))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	renamed := c.renamed(nil, "m.onnx", "r.onnx")
	if took := time.Since(start); took > 10*time.Second || strings.Count(string(renamed), "r.onnx") != values {
		t.Errorf("%v for %d edits", took, strings.Count(string(renamed), "r.onnx"))
	}
	var limit *bounded.Error
	if _, err := parse([]byte("[" + strings.Repeat("0,", 4<<20) + "0]")); !errors.As(err, &limit) {
		t.Errorf("millions of values: got %v", err)
	}
}

// Numbers that pruning changes follow, with the size of a head where it would be computed from their number. The same
// again changes nothing.
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

// Each number of a configuration follows what was changed of the submodel that it describes, or is reported: numbers
// that differ by layer, that were others before, that may be those of another submodel, or that have no key.
func TestNumbersFollowTheirSubmodel(t *testing.T) {
	heads := func(of pass.Submodel, from, size int, to ...int) pass.ConfigValue {
		return pass.ConfigValue{Name: pass.AttentionHeads, Submodel: of, From: from, To: to, HeadSize: size}
	}
	neurons := func(of pass.Submodel, from int, to ...int) pass.ConfigValue {
		return pass.ConfigValue{Name: pass.IntermediateSize, Submodel: of, From: from, To: to}
	}
	layers := func(of pass.Submodel, n int, removed ...int) pass.RemovedLayers {
		return pass.RemovedLayers{Submodel: of, Layers: n, Removed: removed}
	}
	for _, c := range []struct {
		name, model, before string
		removed             []pass.RemovedLayers
		values              []pass.ConfigValue
		after               string
		stale               []string
	}{
		{"Gemma", "", `{"head_dim":256,"intermediate_size":2048,"num_attention_heads":8,"num_key_value_heads":1}`, nil,
			[]pass.ConfigValue{neurons(pass.Text, 2048, 1434)},
			`{"head_dim":256,"intermediate_size":1434,"num_attention_heads":8,"num_key_value_heads":1}`, nil},
		{"GPT-2", "", `{"n_embd":768,"n_head":12,"n_inner":null,"n_layer":12}`,
			[]pass.RemovedLayers{layers(pass.Text, 12, 1, 2)},
			[]pass.ConfigValue{neurons(pass.Text, 3072, 2304), heads(pass.Text, 12, 64, 9)},
			`{"n_embd":768,"n_head":9, "head_dim": 64,"n_inner":2304,"n_layer":10}`, nil},
		{"GPT-2 without n_inner", "", `{"n_embd":768}`, nil, []pass.ConfigValue{neurons(pass.Text, 3072, 2304)},
			`{"n_embd":768}`, []string{"intermediate_size"}},
		{"Llama", "", `{"intermediate_size":64,"num_attention_heads":8,"num_key_value_heads":4}`, nil,
			[]pass.ConfigValue{heads(pass.Text, 8, 16, 6),
				{Name: pass.KeyValueHeads, Submodel: pass.Text, From: 4, To: []int{3}}},
			`{"intermediate_size":64,"num_attention_heads":6, "head_dim": 16,"num_key_value_heads":3}`, nil},
		{"Llama of as many key and value heads", "", `{"head_dim":16,"num_attention_heads":8,"num_key_value_heads":8}`, nil,
			[]pass.ConfigValue{heads(pass.Text, 8, 16, 6)}, `{"head_dim":16,"num_attention_heads":6,"num_key_value_heads":6}`,
			nil},
		{"one key and value head", "", `{"head_dim":16,"num_attention_heads":8,"num_kv_heads":1}`, nil,
			[]pass.ConfigValue{heads(pass.Text, 8, 16, 6),
				{Name: pass.KeyValueHeads, Submodel: pass.Text, From: 1, To: []int{1}}},
			`{"head_dim":16,"num_attention_heads":6,"num_kv_heads":1}`, nil},
		{"Whisper", "", `{"encoder_attention_heads":6,"decoder_attention_heads":6,"encoder_ffn_dim":8,"decoder_ffn_dim":8,"encoder_layers":4,"decoder_layers":4,"num_hidden_layers":4}`,
			[]pass.RemovedLayers{layers(pass.Decoder, 4, 1)},
			[]pass.ConfigValue{neurons(pass.Decoder, 8, 6), neurons(pass.Audio, 8, 5), heads(pass.Audio, 6, 0, 4)},
			`{"encoder_attention_heads":4,"decoder_attention_heads":6,"encoder_ffn_dim":5,"decoder_ffn_dim":6,"encoder_layers":4,"decoder_layers":3,"num_hidden_layers":4}`, []string{"head_dim"}},
		{"heads of both", "", `{"encoder_attention_heads":6,"decoder_attention_heads":6}`, nil,
			[]pass.ConfigValue{heads(pass.Decoder, 6, 4, 5), heads(pass.Text, 6, 4, 5)},
			`{"encoder_attention_heads":5, "head_dim": 4,"decoder_attention_heads":5}`, nil},
		{"a decoder, by its file", "decoder_model.onnx", `{"encoder_ffn_dim":8,"decoder_ffn_dim":8}`, nil,
			[]pass.ConfigValue{neurons(pass.Text, 8, 6)},
			`{"encoder_ffn_dim":8,"decoder_ffn_dim":6}`, nil},
		{"encoder or decoder", "", `{"encoder_ffn_dim":8,"decoder_ffn_dim":8}`, nil, []pass.ConfigValue{neurons("", 8, 6)},
			`{"encoder_ffn_dim":8,"decoder_ffn_dim":8}`, []string{"decoder_ffn_dim", "encoder_ffn_dim"}},
		{"T5", "", `{"d_ff":64,"d_kv":8,"num_decoder_layers":6,"num_heads":4,"num_layers":6}`,
			[]pass.RemovedLayers{layers(pass.Decoder, 6, 2), layers(pass.Text, 6, 2, 3)},
			[]pass.ConfigValue{neurons(pass.Decoder, 64, 32), neurons(pass.Text, 64, 32)},
			`{"d_ff":32,"d_kv":8,"num_decoder_layers":5,"num_heads":4,"num_layers":4}`, nil},
		{"T5 of two sizes", "", `{"d_ff":64}`, nil,
			[]pass.ConfigValue{neurons(pass.Decoder, 64, 32), neurons(pass.Text, 64, 16)}, `{"d_ff":64}`, []string{"d_ff"}},
		{"CLIP", "", `{"text_config":{"intermediate_size":64},"vision_config":{"intermediate_size":64}}`, nil,
			[]pass.ConfigValue{neurons(pass.Vision, 64, 48)},
			`{"text_config":{"intermediate_size":64},"vision_config":{"intermediate_size":48}}`, nil},
		{"Swin", "", `{"depths":[2,2,6,2],"mlp_ratio":4.0,"num_heads":[3,6,12,24]}`,
			[]pass.RemovedLayers{layers(pass.Vision, 6, 1, 2)}, []pass.ConfigValue{neurons(pass.Vision, 96, 72)},
			`{"depths":[2,2,4,2],"mlp_ratio":4.0,"num_heads":[3,6,12,24]}`, []string{"depths", "mlp_ratio"}},
		{"layers that differ", "", `{"intermediate_size":64}`, nil, []pass.ConfigValue{neurons("", 64, 32, 64)},
			`{"intermediate_size":64}`, []string{"intermediate_size"}},
		{"a first layer of another kind", "", `{"num_hidden_layers":4}`, []pass.RemovedLayers{layers("", 3, 1)}, nil,
			`{"num_hidden_layers":4}`, []string{"num_hidden_layers"}},
		{"one step after the other", "", `{"num_hidden_layers":6,"intermediate_size":8}`,
			[]pass.RemovedLayers{layers("", 6, 1, 2), {Layers: 4, Removed: []int{0}, Change: 1}},
			[]pass.ConfigValue{neurons("", 8, 6), {Name: pass.IntermediateSize, From: 6, To: []int{3}, Change: 1}},
			`{"num_hidden_layers":3,"intermediate_size":3}`, nil},
		{"stacks of which one has as many layers as are left of the other", "", `{"num_hidden_layers":4}`,
			[]pass.RemovedLayers{layers("", 4, 1, 2), layers("", 2, 1)}, nil,
			`{"num_hidden_layers":2}`, nil},
	} {
		model := cmp.Or(c.model, "model.onnx")
		from, to := write(t, map[string]string{config: c.before, model: ""}), t.TempDir()
		path := filepath.Join(from, model)
		f, err := Open(path, filepath.Join(to, model), []string{path})
		if err != nil {
			t.Fatal(err)
		}
		set := &atomicfile.Set{}
		if err := errors.Join(f.Write(set, c.removed, c.values), set.Publish(""), set.Close()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, to, config); got != c.after || !slices.Equal(f.Stale, c.stale) {
			t.Errorf("%s: got %s, to check %v\nwant %s, to check %v", c.name, got, f.Stale, c.after, c.stale)
		}
	}
}

// Numbers are those of one of several models of a folder: they stay, and are reported.
func TestNumbersOfSeveralModelsAreReported(t *testing.T) {
	from, to := write(t, map[string]string{config: `{"ffn_dim":8}`, "a.onnx": "", "b.onnx": ""}), t.TempDir()
	f, err := Open(filepath.Join(from, "a.onnx"), filepath.Join(to, "a.onnx"), []string{filepath.Join(from, "a.onnx")})
	if err != nil {
		t.Fatal(err)
	}
	set := &atomicfile.Set{}
	if err := errors.Join(f.Write(set, nil, []pass.ConfigValue{{Name: pass.IntermediateSize, From: 8, To: []int{6}}}),
		set.Publish(""), set.Close()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, to, config); got != `{"ffn_dim":8}` || !slices.Equal(f.Stale, []string{"ffn_dim"}) {
		t.Errorf("got %s, to check %v", got, f.Stale)
	}
}

// The configuration of a model in a folder "onnx" is that of the folder above: its files, and those of the modules of a
// sentence encoder, come with the model, next to it or above a folder "onnx" of the result.
func TestConfigurationAboveTheFolderOfModels(t *testing.T) {
	from := t.TempDir()
	for name, text := range map[string]string{
		config: `{"intermediate_size":8}`, "tokenizer.json": "{}", "onnx/model.onnx": "", "onnx/model_q4.onnx": "",
		"other.onnx":            "",
		"modules.json":          `[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Router"}, {"path": "../outside"}, {"path": "missing"}]`,
		"1_Pooling/config.json": "{}", "2_Router/query/config.json": "{}", "2_Router/.hidden": "", "openvino/model.xml": "",
	} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{config, "modules.json", "tokenizer.json", filepath.Join("1_Pooling", config),
		filepath.Join("2_Router", "query", config)}
	model := filepath.Join(from, "onnx", "model.onnx")
	for _, at := range []string{"", "onnx"} {
		to := t.TempDir()
		result := filepath.Join(to, at, "model.onnx")
		if err := os.MkdirAll(filepath.Dir(result), 0o755); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the same again changes nothing
			f, err := Open(model, result, []string{model})
			if err != nil {
				t.Fatal(err)
			}
			set := &atomicfile.Set{}
			if err := errors.Join(f.Write(set, nil, []pass.ConfigValue{{Name: pass.IntermediateSize, From: 8, To: []int{6}}}),
				set.Publish(""), set.Close()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(f.Copied, want) || !slices.Equal(f.Omitted, []string{"onnx", "openvino"}) {
				t.Errorf("%s: copied %q, omitted %q", result, f.Copied, f.Omitted)
			}
			if got := read(t, to, config); got != `{"intermediate_size":6}` {
				t.Errorf("%s: configuration %s", result, got)
			}
			for _, name := range want {
				read(t, to, name)
			}
		}
	}
	names, err := Files(Root(model), model)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("files of the model: %q, %v", names, err)
	}
	if f, err := Open(model, filepath.Join(from, "onnx", "model.int8.onnx"), []string{model}); f != nil || err != nil {
		t.Errorf("a result next to the model: %v, %v", f, err)
	}
	linked := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(linked, "1_Pooling")); err != nil {
		t.Fatal(err)
	}
	var wrong *pass.OptionError
	if _, err := Open(model, filepath.Join(linked, "model.onnx"), []string{model}); !errors.As(err, &wrong) {
		t.Errorf("a link in place of a folder: %v", err)
	}
}
