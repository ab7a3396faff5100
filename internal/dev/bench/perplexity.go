package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

//go:embed perplexity.py
var perplexityScript string

var languageTraining = []string{"--loss", "next-token", "--metric", "perplexity", "--dim", "sequence_length=128", "--epochs", "3", "--batch", "16", "--optimizer", "adamw", "--lr", "1e-3", "--weight-decay", "0.1", "--seed", "1"}

// perplexities are the rows of the section: commands without model and output.
var perplexities = []struct {
	name    string
	args    []string
	samples bool
}{
	{"`float16`", []string{"quantize", "--method", "float16"}, false},
	{"`weight-int8`", []string{"quantize", "--method", "weight-int8"}, false},
	{"`dynamic-int8`", []string{"quantize", "--method", "dynamic-int8"}, false},
	{"`weight-int4`", []string{"quantize", "--method", "weight-int4"}, false},
	{"`weight-int4 --algo hqq`", []string{"quantize", "--method", "weight-int4", "--algo", "hqq"}, false},
	{"`weight-int4 --algo awq`", []string{"quantize", "--method", "weight-int4", "--algo", "awq"}, true},
	{"`weight-int4 --algo gptq`", []string{"quantize", "--method", "weight-int4", "--algo", "gptq"}, true},
	{"`weight-int2`", []string{"quantize", "--method", "weight-int2"}, false},
	{"`weight-int2 --algo gptq`", []string{"quantize", "--method", "weight-int2", "--algo", "gptq"}, true},
	{"`palette --entries 16`", []string{"quantize", "--method", "palette", "--entries", "16"}, false},
	{"`palette --entries 4`", []string{"quantize", "--method", "palette", "--entries", "4"}, false},
	{"`l1 --amount 0.5`", []string{"prune", "--method", "l1", "--amount", "0.5"}, false},
	{"`wanda --amount 0.5`", []string{"prune", "--method", "wanda", "--amount", "0.5"}, true},
	{"`sparsegpt --amount 0.5`", []string{"prune", "--method", "sparsegpt", "--amount", "0.5"}, true},
	{"`wanda --amount 0.6`", []string{"prune", "--method", "wanda", "--amount", "0.6"}, true},
	{"`wanda --amount 0.6 --allocate owl`", []string{"prune", "--method", "wanda", "--amount", "0.6", "--allocate", "owl"}, true},
	{"`sparsegpt --amount 0.6`", []string{"prune", "--method", "sparsegpt", "--amount", "0.6"}, true},
	{"`sparsegpt --amount 0.6 --allocate owl`", []string{"prune", "--method", "sparsegpt", "--amount", "0.6", "--allocate", "owl"}, true},
	{"`nm --pattern 2:4`", []string{"prune", "--method", "nm", "--pattern", "2:4"}, false},
	{"`wanda --pattern 2:4`", []string{"prune", "--method", "wanda", "--pattern", "2:4"}, true},
	{"`sparsegpt --pattern 2:4`", []string{"prune", "--method", "sparsegpt", "--pattern", "2:4"}, true},
	{"`heads --amount 0.5`", []string{"prune", "--method", "heads", "--amount", "0.5"}, false},
	{"`heads --amount 0.5 --importance taylor`", []string{"prune", "--method", "heads", "--amount", "0.5", "--importance", "taylor"}, true},
	{"`ffn --amount 0.25`", []string{"prune", "--method", "ffn", "--amount", "0.25"}, false},
	{"`ffn --amount 0.25 --importance wanda`", []string{"prune", "--method", "ffn", "--amount", "0.25", "--importance", "wanda"}, true},
	{"`ffn --amount 0.25 --importance taylor`", []string{"prune", "--method", "ffn", "--amount", "0.25", "--importance", "taylor"}, true},
}

// perplexity measures a language model that this program trained, compressed by each method.
func (b *bench) perplexity(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "perplexity")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := b.languageTexts(ctx, dir); err != nil {
		return "", err
	}
	t, err := b.learnedOnce(ctx, []string{"--data", at("train.bin")}, at("trained.onnx"), append([]string{"finetune", at("start.onnx")}, languageTraining...)...)
	if err != nil {
		return "", err
	}
	before, _, err := b.perplexityOf(ctx, at("trained.onnx"), at("trained.onnx"), at("test.bin"))
	if err != nil {
		return "", err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "## Perplexity of a small language model\n\nA decoder of 5.3 M parameters (6 layers of width 256, 8 heads of which 2 have keys and values, rotary positions, 2048 byte pairs), trained by\n`finetune %s` on the valid text of WikiText-2\nand Shakespeare (validation perplexity %.2f); perplexity is that of the first half of WikiText-2's test text in samples of 128 tokens. Methods that need samples have\n128 of the training text, spread evenly.\n\n", strings.Join(languageTraining, " "), t.ValidationMetric[len(t.ValidationMetric)-1].Y)
	fmt.Fprintf(&s, "| method | bytes | fraction | perplexity | difference |\n|---|---:|---:|---:|---:|\n| none | %d | 1.000 | %.2f | |\n", bytesOf(at("trained.onnx")), before)
	for _, p := range perplexities {
		args := append(p.args[:len(p.args):len(p.args)], at("trained.onnx"), "-o", at("compressed.onnx"))
		if p.samples {
			args = append(args, "--data", at("train.bin"), "--dim", "sequence_length=128")
		}
		if _, err := b.do(ctx, args...); err != nil {
			return "", err
		}
		_, after, err := b.perplexityOf(ctx, at("trained.onnx"), at("compressed.onnx"), at("test.bin"))
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		n := bytesOf(at("compressed.onnx"))
		row := fmt.Sprintf("| %s | %d | %.3f | %.2f | %+.2f |\n", p.name, n, float64(n)/float64(bytesOf(at("trained.onnx"))), after, after-before)
		fmt.Fprint(os.Stderr, row)
		s.WriteString(row)
	}
	return s.String(), nil
}

// languageTexts makes the model with random weights and the token ids, unless they are there.
func (b *bench) languageTexts(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, step := range [][]string{{"start.onnx", "model", filepath.Join(dir, "start.onnx")}, {"test.bin", "tokens", b.shared, dir}} {
		if _, err := os.Stat(filepath.Join(dir, step[0])); err == nil {
			continue
		}
		if _, err := b.stdout(ctx, b.genai, append([]string{"-c", perplexityScript}, step[1:]...)...); err != nil {
			return fmt.Errorf("%s: %w", step[1], err)
		}
	}
	return nil
}

// perplexityOf returns the perplexities of a model and of its compressed form.
func (b *bench) perplexityOf(ctx context.Context, model, compressed, tokens string) (before, after float64, err error) {
	args := []string{"--json", "verify", model, compressed, "--perplexity", tokens, "--no-layers", "--step", "128", "--dim", "sequence_length=128", "--batch", "8"}
	if b.quick {
		args = append(args, "--limit", "8")
	}
	out, err := exec.CommandContext(ctx, b.tool, args...).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("verify %s: %w", compressed, err)
	}
	var facts struct{ Verification verification.Result }
	if err := json.Unmarshal(out, &facts); err != nil {
		return 0, 0, err
	}
	m := facts.Verification.Metric
	if m == nil || m.Before == nil || m.After == nil {
		return 0, 0, fmt.Errorf("verify %s: no perplexity", compressed)
	}
	return *m.Before, *m.After, nil
}
