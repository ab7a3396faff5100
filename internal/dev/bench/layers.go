package main

import (
	"context"
	"fmt"
	"strings"
)

// pruneLayers compares importances of layers.
func (b *bench) pruneLayers(ctx context.Context) (string, error) {
	m, err := b.miniLM(ctx, "layers")
	if err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "## Layers\n\n`prune --method layers`; MiniLM of 6 layers. %s", likenessText)
	t.WriteString("| layers kept | importance | cosine, pruned | after 1 epoch | accuracy, pruned | after 1 epoch |\n|---:|---|---:|---:|---:|---:|\n")
	const all = 6
	for _, kept := range []int{5, 4, 3, 2} {
		for _, importance := range []string{"spread", "cosine"} {
			before, after, err := m.distilled(ctx, fmt.Sprintf("%d layers %s", kept, importance),
				func(out string) error {
					args := []string{"prune", m.dense, "-o", out, "--method", "layers",
						"--amount", fmt.Sprint(float64(all-kept) / all), "--importance", importance}
					_, err := b.do(ctx, append(args, m.data.train...)...)
					return err
				})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&t, "| %d | %s | %.3f | %s | %s | %s |\n", kept, importance, before.cosine, after.cosines(),
				percent(before.accuracy), after.accuracies())
		}
	}
	return t.String(), nil
}
