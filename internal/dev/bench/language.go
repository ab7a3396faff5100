package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed language.py
var languageScript string

// languageModels are the shapes of the section, of language.py.
var languageModels = []string{"0.4B", "1.2B"}

// A quantizer makes a folder with an int4 model of symmetric blocks of 32.
type quantizer struct {
	name string
	cost cost
	out  string
}

// language compares int4 of language models with the builder of onnxruntime-genai and with ONNX Runtime's quantizer.
func (b *bench) language(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Language models in int4\n\n")
	t.WriteString("Decoders of random weights (seed 0), built by onnxruntime-genai's builder, in int4 with symmetric blocks of 32 and accuracy level 4: by the builder from the\n")
	t.WriteString("model of transformers, and by ONNX Runtime's `MatMulNBitsQuantizer` and mcompress from the builder's fp32 model. The peers leave the embedding in float. SQNR is that of the logits of 64 random\n")
	t.WriteString("tokens in ONNX Runtime. Tokens/s and peak memory are those of onnxruntime-genai's generate loop: 32 tokens after a prompt of 32, the best of interleaved runs.\n\n")
	t.WriteString("| model | made by | s | peak MiB | file MiB | logits SQNR dB | tokens/s | peak MiB of a run |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	shapes := languageModels
	if b.quick {
		shapes = []string{"tiny"}
	}
	for _, shape := range shapes {
		rows, err := b.languageModel(ctx, shape)
		if err != nil {
			return "", fmt.Errorf("%s: %w", shape, err)
		}
		t.WriteString(rows)
	}
	return t.String(), nil
}

// languageModel is the rows of one shape. Its files are removed: they are six times the size of the model in float16.
func (b *bench) languageModel(ctx context.Context, shape string) (string, error) {
	dir, script, err := b.languageSource(ctx, shape)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	python := func(args ...string) []string { return append([]string{b.genai, script}, args...) }
	at := func(name string) string { return filepath.Join(dir, name) }
	tool, err := filepath.Abs(b.tool)
	if err != nil {
		return "", err
	}
	list := []quantizer{{name: "builder", out: at("builder")}, {name: "MatMulNBitsQuantizer", out: at("nbits")},
		{name: "mcompress", out: at("mcompress")}, {name: "mcompress, embedding in float", out: at("float")}}
	ours := func(out string, more ...string) []string {
		return append(append([]string{tool}, languageOptions(out, filepath.Join(at("fp32"), "model.onnx"))...), more...)
	}
	for i, args := range [][]string{
		python("build", at("source"), list[0].out, "int4"),
		python("nbits", at("fp32"), list[1].out),
		ours(list[2].out),
		ours(list[3].out, "--skip", "op:Gather"),
	} {
		if list[i].cost, err = b.peer(ctx, command("", args...).args...); err != nil {
			return "", err
		}
	}
	return b.languageRows(ctx, shape, at("fp32"), script, list)
}

// languageOptions quantize a model of the builder to a folder.
func languageOptions(out, in string) []string {
	return []string{
		"quantize", "--method", "weight-int4", "--target", "genai", "--symmetric", "--form", "matmulnbits",
		"--accuracy-level", "4",
		"--report", "none", "--no-verify", "--quiet", "-o", out + "/", in,
	}
}

// languageSource makes a folder with a model of a shape by the builder, in fp32/model.onnx, and language.py. The caller
// removes it.
func (b *bench) languageSource(ctx context.Context, shape string) (dir, script string, err error) {
	if dir, err = filepath.Abs(filepath.Join(b.dir, "language")); err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	script = filepath.Join(dir, "language.py")
	if err := os.WriteFile(script, []byte(languageScript), 0o644); err != nil {
		return "", "", err
	}
	source, fp32 := filepath.Join(dir, "source"), filepath.Join(dir, "fp32")
	for _, args := range [][]string{{"model", shape, source}, {"build", source, fp32, "fp32"}} {
		if _, err := b.peer(ctx, command("", append([]string{b.genai, script}, args...)...).args...); err != nil {
			return "", "", err
		}
	}
	return dir, script, nil
}

// languageRows runs the models.
func (b *bench) languageRows(ctx context.Context, shape, source, script string, list []quantizer) (string, error) {
	speed := []string{"speed", fmt.Sprint(b.runs)}
	for _, q := range list {
		speed = append(speed, q.out)
	}
	text, err := b.scripted(ctx, script, speed...)
	if err != nil {
		return "", err
	}
	speeds := strings.Fields(text)
	var rows strings.Builder
	for i, q := range list {
		sqnr, err := b.scripted(ctx, script, "sqnr", source, q.out)
		if err != nil {
			return "", err
		}
		run, err := b.peer(ctx, command("", b.genai, script, "generate", q.out).args...)
		if err != nil {
			return "", err
		}
		bytes, err := modelBytes(q.out)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&rows, "| %s | %s | %.1f | %.0f | %.1f | %s | %s | %.0f |\n", shape, q.name, q.cost.Seconds,
			q.cost.Peak, float64(bytes)/(1<<20), strings.TrimSpace(sqnr), speeds[i], run.Peak)
	}
	return rows.String(), nil
}

// scripted runs a verb of language.py and returns what it prints.
func (b *bench) scripted(ctx context.Context, script string, args ...string) (string, error) {
	return b.stdout(ctx, b.genai, append([]string{script}, args...)...)
}

// modelBytes is the size of a folder's model with its data.
func modelBytes(folder string) (int64, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.onnx*"))
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, path := range found {
		st, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		total += st.Size()
	}
	return total, nil
}
