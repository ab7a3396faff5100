package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

//go:embed bert.py
var bertScript string

// pruneHeads prunes attention heads and neurons of transformers: accuracy of MiniLM before and after one epoch of
// distillation, whose results are kept, and then size and time of a BERT.
func (b *bench) pruneHeads(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Attention heads and neurons\n\n`prune --method heads`, then `--method ffn`, each with the same fraction.\n\n")
	for _, part := range []func(context.Context, *strings.Builder) error{b.headsOfMiniLM, b.headsOfBERT} {
		if err := part(ctx, &t); err != nil {
			return "", err
		}
	}
	return t.String(), nil
}

// headsOfBERT compares size and time with the fraction of multiplications that is left, which is that of heads and
// neurons: all products of the layers have as many fewer columns or rows.
func (b *bench) headsOfBERT(ctx context.Context, t *strings.Builder) error {
	models := []string{b.trainFile("bert.onnx")}
	if _, err := b.stdout(ctx, b.genai, "-c", bertScript, models[0]); err != nil {
		return err
	}
	amounts := []float64{0.25, 0.5}
	for _, a := range amounts {
		out := b.trainFile(fmt.Sprintf("bert.%v.onnx", a))
		if err := b.withoutHeads(ctx, models[0], out, a); err != nil {
			return err
		}
		models = append(models, out)
	}
	defer func() {
		for _, m := range models {
			os.Remove(m)
		}
	}()
	text, err := b.stdout(ctx, b.python, slices.Concat([]string{"-c", bertScript, "time",
		strconv.Itoa(6 * b.some(b.runs))}, models)...)
	if err != nil {
		return err
	}
	seconds := make([]float64, len(models))
	if _, err := fmt.Sscan(text, &seconds[0], &seconds[1], &seconds[2]); err != nil {
		return err
	}
	t.WriteString("\nBERT of 12 layers of 768 channels, vocabulary 2048; ONNX Runtime, one thread, 128 tokens, minimum of runs in turns.\n\n")
	t.WriteString("| amount | multiplications removed, % | bytes | removed, % | ms | removed, % |\n|---:|---:|---:|---:|---:|---:|\n")
	fmt.Fprintf(t, "| 0 | 0 | %d | | %.0f | |\n", bytesOf(models[0]), 1000*seconds[0])
	for i, a := range amounts {
		n := bytesOf(models[i+1])
		fmt.Fprintf(t, "| %v | %.0f | %d | %.1f | %.0f | %.1f |\n", a, 100*a, n,
			100*(1-float64(n)/float64(bytesOf(models[0]))), 1000*seconds[i+1], 100*(1-seconds[i+1]/seconds[0]))
	}
	return nil
}

// withoutHeads removes a fraction of the heads and of the neurons.
func (b *bench) withoutHeads(ctx context.Context, in, out string, amount float64, more ...string) error {
	heads, fraction := b.trainFile("heads.onnx"), fmt.Sprint(amount)
	defer os.Remove(heads)
	if _, err := b.do(ctx, slices.Concat([]string{"prune", in, "-o", heads, "--method", "heads",
		"--amount", fraction}, more)...); err != nil {
		return err
	}
	_, err := b.do(ctx, slices.Concat([]string{"prune", heads, "-o", out, "--method", "ffn", "--amount", fraction},
		more)...)
	return err
}

// headsOfMiniLM compares importances at the same multiplications, before and after distillation with several seeds.
func (b *bench) headsOfMiniLM(ctx context.Context, t *strings.Builder) error {
	m, err := b.miniLM(ctx, "heads")
	if err != nil {
		return err
	}
	fmt.Fprintf(t, "MiniLM. %s", likenessText)
	t.WriteString("| amount | importance | cosine, pruned | after 1 epoch | accuracy, pruned | after 1 epoch |\n|---:|---|---:|---:|---:|---:|\n")
	for _, amount := range []float64{0.25, 0.5} {
		for _, importance := range []string{"magnitude", "wanda", "taylor"} {
			before, after, err := m.distilled(ctx, fmt.Sprintf("%v %s", amount, importance), func(out string) error {
				return b.withoutHeads(ctx, m.dense, out, amount,
					slices.Concat([]string{"--importance", importance}, m.data.train)...)
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "| %v | %s | %.3f | %s | %s | %s |\n", amount, importance, before.cosine, after.cosines(),
				percent(before.accuracy), after.accuracies())
		}
	}
	return nil
}
