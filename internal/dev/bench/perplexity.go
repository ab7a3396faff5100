package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

//go:embed perplexity.py
var perplexityScript string

// Options of the training, of the distillation of compressed models, and of all commands that read tokens.
var (
	languageTraining = []string{"--loss", "next-token", "--metric", "perplexity", "--epochs", "3",
		"--batch", "16", "--optimizer", "adamw", "--lr", "1e-3", "--weight-decay", "0.1", "--seed", "1"}
	languageDistillation = []string{"--loss", "kl", "--temperature", "1", "--steps", "100", "--batch", "16",
		"--lr", "3e-4", "--seed", "1"}
	languageSamples = []string{"--dim", "sequence_length=128"}
)

// perplexities are the rows of the section by kind. A row is commands without model and output, each for the output of
// the one before it.
var perplexities = []struct {
	kind string
	rows [][]string
}{
	{"16 and 8 bits", [][]string{
		{"quantize --method float16"},
		{"quantize --method weight-int8"},
		{"quantize --method dynamic-int8"},
		{"quantize --method static-int8 --data"},
	}},
	{"4 bits", [][]string{
		{"quantize --method weight-int4"},
		{"quantize --method weight-int4 --algo hqq"},
		{"quantize --method weight-int4 --algo hqq --form matmulnbits"},
		{"quantize --method weight-int4 --algo awq --data"},
		{"quantize --method weight-int4 --algo gptq --data"},
		{"quantize --method palette --entries 16"},
	}},
	{"2 bits", [][]string{
		{"quantize --method weight-int2"},
		{"quantize --method weight-int2 --algo hqq"},
		{"quantize --method weight-int2 --algo awq --data"},
		{"quantize --method weight-int2 --algo gptq --data"},
		{"quantize --method palette --entries 4"},
		{"finetune --teacher DENSE --qat weight-int2"},
	}},
	{"50 % zeros", [][]string{
		{"prune --method l1 --amount 0.5"},
		{"prune --method wanda --amount 0.5 --data"},
		{"prune --method sparsegpt --amount 0.5 --data"},
	}},
	{"60 % zeros", [][]string{
		{"prune --method l1 --amount 0.6"},
		{"prune --method wanda --amount 0.6 --data"},
		{"prune --method wanda --amount 0.6 --allocate owl --data"},
		{"prune --method sparsegpt --amount 0.6 --data"},
		{"prune --method sparsegpt --amount 0.6 --allocate owl --data"},
	}},
	{"N:M sparsity", [][]string{
		{"prune --method nm --pattern 4:8"},
		{"prune --method wanda --pattern 4:8 --data"},
		{"prune --method sparsegpt --pattern 4:8 --data"},
		{"prune --method nm --pattern 2:4"},
		{"prune --method wanda --pattern 2:4 --data"},
		{"prune --method sparsegpt --pattern 2:4 --data"},
		{"prune --method sparsegpt --pattern 2:4 --data", "finetune --teacher DENSE"},
	}},
	{"attention heads", [][]string{
		{"prune --method heads --amount 0.5"},
		{"prune --method heads --amount 0.5 --importance wanda --data"},
		{"prune --method heads --amount 0.5 --importance taylor --data"},
		{"prune --method heads --amount 0.5 --importance taylor --data", "finetune --teacher DENSE"},
	}},
	{"neurons", [][]string{
		{"prune --method ffn --amount 0.25"},
		{"prune --method ffn --amount 0.25 --importance wanda --data"},
		{"prune --method ffn --amount 0.25 --importance taylor --data"},
		{"prune --method ffn --amount 0.25 --importance taylor --data", "finetune --teacher DENSE"},
	}},
	{"layers", [][]string{
		{"prune --method layers --amount 0.17"},
		{"prune --method layers --amount 0.17 --importance cosine --data"},
		{"prune --method layers --amount 0.33"},
		{"prune --method layers --amount 0.33 --importance cosine --data"},
		{"prune --method layers --amount 0.33 --importance cosine --data", "finetune --teacher DENSE"},
	}},
}

// A smallModel is the language model of the section, with the rows that ended.
type smallModel struct {
	*bench
	dir   string
	ended *results
}

// perplexity measures a language model that this program trained, compressed by each method.
func (b *bench) perplexity(ctx context.Context) (string, error) {
	m := &smallModel{bench: b, dir: filepath.Join(b.dir, "perplexity")}
	if b.quick {
		m.dir += "-quick"
	}
	if err := m.make(ctx); err != nil {
		return "", err
	}
	t, err := m.trained(ctx)
	if err != nil {
		return "", err
	}
	if m.ended, err = openResults(m.at("results.txt")); err != nil {
		return "", err
	}
	bytes, dense, err := m.row(ctx, nil)
	if err != nil {
		return "", err
	}
	var s strings.Builder
	s.WriteString("## Perplexity of a small language model\n\nA decoder of 5.3 M parameters (6 layers of width 256, 8 heads of which 2 have keys and values, rotary positions, 2048 byte pairs), trained by\n")
	fmt.Fprintf(&s, "`finetune %s` on the valid text of WikiText-2 and Shakespeare\n(validation perplexity %.2f). ",
		strings.Join(languageTraining, " "), t.ValidationMetric[len(t.ValidationMetric)-1].Y)
	fmt.Fprintf(&s, "Perplexity is that of the first half of WikiText-2's test text, in samples of 128 tokens. Methods with `--data` have 128 samples of the\ntraining text, spread evenly. `finetune` has the options `%s`.\n\n", strings.Join(languageDistillation, " "))
	fmt.Fprintf(&s, "| kind | method | bytes | fraction | perplexity | difference |\n|---|---|---:|---:|---:|---:|\n| | none | %.0f | 1.000 | %.2f | |\n", bytes, dense)
	for _, group := range perplexities {
		kind := group.kind
		for _, commands := range group.rows {
			n, after, err := m.row(ctx, commands)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&s, "| %s | %s | %.0f | %.3f | %.2f | %+.2f |\n", kind, rowName(commands), n, n/bytes, after,
				after-dense)
			kind = ""
		}
	}
	return s.String(), nil
}

// at is the path of a file of the section.
func (m *smallModel) at(name string) string { return filepath.Join(m.dir, name) }

// trained trains the model, unless an earlier run did. It continues an interrupted training.
func (m *smallModel) trained(ctx context.Context) (pass.Training, error) {
	checkpoint := []string{"--save", m.at("checkpoint.zip"), "--save-every", "100", "--resume"}
	args := slices.Concat([]string{"finetune", m.at("start.onnx")}, languageTraining, checkpoint)
	return m.learnedOnce(ctx, m.tokens(), m.at("trained.onnx"), args...)
}

// tokens are the options that read the training text.
func (m *smallModel) tokens() []string {
	return slices.Concat([]string{"--data", m.at("train.bin")}, languageSamples)
}

// row returns the size and the perplexity of the model after commands, unless an earlier run did.
func (m *smallModel) row(ctx context.Context, commands []string) (bytes, perplexity float64, err error) {
	name := rowName(commands)
	perplexity, err = m.ended.once(name+": perplexity", func() (float64, error) {
		model, err := m.after(ctx, commands)
		if err != nil {
			return 0, err
		}
		if err := m.ended.add(name+": bytes", float64(bytesOf(model))); err != nil {
			return 0, err
		}
		return m.perplexityOf(ctx, model)
	})
	bytes, _ = m.ended.known(name + ": bytes")
	return bytes, perplexity, err
}

// rowName is the name of commands in the table.
func rowName(commands []string) string {
	short := strings.NewReplacer("quantize --method ", "", "prune --method ", "")
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = "`" + short.Replace(c) + "`"
	}
	return strings.Join(names, ", then ")
}

// after runs commands and returns the path of the last model.
func (m *smallModel) after(ctx context.Context, commands []string) (string, error) {
	model := m.at("trained.onnx")
	for i, c := range commands {
		out := m.at(fmt.Sprintf("compressed.%d.onnx", i))
		args := strings.Fields(strings.ReplaceAll(c, "DENSE", m.at("trained.onnx")))
		args = slices.Insert(args, 1, model, "-o", out)
		var err error
		switch last := len(args) - 1; {
		case args[0] == "finetune":
			_, err = m.learn(ctx, m.tokens(), append(args, languageDistillation...)...)
		case args[last] == "--data":
			_, err = m.do(ctx, append(args[:last], m.tokens()...)...)
		default:
			_, err = m.do(ctx, args...)
		}
		if err != nil {
			return "", err
		}
		model = out
	}
	return model, nil
}

// make makes the model with random weights and the token ids, unless they are there.
func (m *smallModel) make(ctx context.Context) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	for _, step := range [][]string{{"start.onnx", "model", m.at("start.onnx")},
		{"test.bin", "tokens", m.shared, m.dir}} {
		if _, err := os.Stat(m.at(step[0])); err == nil {
			continue
		}
		if _, err := m.stdout(ctx, m.genai, append([]string{"-c", perplexityScript}, step[1:]...)...); err != nil {
			return fmt.Errorf("%s: %w", step[1], err)
		}
	}
	return nil
}

// perplexityOf returns the perplexity of a model on the test text.
func (m *smallModel) perplexityOf(ctx context.Context, model string) (float64, error) {
	args := slices.Concat([]string{"--json", "verify", model, "--perplexity", m.at("test.bin"), "--step", "128",
		"--batch", "8"}, languageSamples)
	if m.quick {
		args = append(args, "--limit", "8")
	}
	out, err := exec.CommandContext(ctx, m.tool, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("verify %s: %w", model, err)
	}
	var facts struct{ Verification verification.Result }
	if err := json.Unmarshal(out, &facts); err != nil {
		return 0, err
	}
	if metric := facts.Verification.Metric; metric != nil && metric.After != nil {
		return *metric.After, nil
	}
	return 0, fmt.Errorf("verify %s: no perplexity", model)
}
