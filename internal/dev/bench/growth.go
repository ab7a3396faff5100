package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A growthRow is a cost of a command on a model of a size.
type growthRow struct {
	by, command string // what the size counts: nodes or bytes
	size        float64
	cost
}

// growth measures how time and memory grow with the bytes of weights and with the nodes of the graph, once each.
func (b *bench) growth(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "growth")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	rows, err := b.growthOfBytes(ctx, dir)
	if err != nil {
		return "", err
	}
	more, err := b.growthOfNodes(ctx, dir)
	if err != nil {
		return "", err
	}
	return growthText(append(rows, more...)), nil
}

// growthOfBytes quantizes models of several sizes with all defaults.
func (b *bench) growthOfBytes(ctx context.Context, dir string) (rows []growthRow, err error) {
	models := []model{mlp, cnn, bert, llm}
	if b.quick {
		models = models[:3]
	}
	for _, m := range models {
		in, err := b.file(ctx, m)
		if err != nil {
			return nil, err
		}
		if rows, err = b.grow(ctx, rows, "bytes", float64(bytesOf(in)), dir, "quantize", in); err != nil {
			return nil, err
		}
	}
	if !b.large {
		return rows, nil
	}
	in := filepath.Join(dir, "decoder.onnx")
	if err := b.scaled(ctx, "decoder", 48, in); err != nil {
		return nil, err
	}
	return b.grow(ctx, rows, "bytes", float64(bytesOf(in)), dir, "quantize", in)
}

// growthOfNodes runs commands on graphs of ten nodes for each small weight.
func (b *bench) growthOfNodes(ctx context.Context, dir string) (rows []growthRow, err error) {
	most := 1_000_000
	if b.quick {
		most = 100_000
	}
	for n := 100; n <= most; n *= 10 {
		in := filepath.Join(dir, "graph.onnx")
		if err := b.scaled(ctx, "blocks", n, in); err != nil {
			return nil, err
		}
		for _, args := range [][]string{{"quantize", in}, {"prune", in}, {"inspect", in}, {"memory", in},
			{"verify", in, in, "--samples", "1"}} {
			if rows, err = b.grow(ctx, rows, "nodes", float64(n), dir, args...); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// scaled makes a model of a kind of internal/dev/scale.
func (b *bench) scaled(ctx context.Context, kind string, n int, path string) error {
	if text, err := exec.CommandContext(ctx, "go", "run", "./internal/dev/scale", "-kind", kind,
		"-n", strconv.Itoa(n), path).CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w: %s", path, err, last(string(text)))
	}
	return nil
}

// grow adds the cost of one run of a command, whose output it deletes.
func (b *bench) grow(ctx context.Context, rows []growthRow, by string, size float64, dir string,
	args ...string) ([]growthRow, error) {
	out := filepath.Join(dir, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	name := args[0]
	if name == "quantize" || name == "prune" {
		args = append(args, "-o", filepath.Join(out, "out.onnx"), "--quiet")
	}
	c, err := b.peer(ctx, command("", append([]string{b.tool}, args...)...).args...)
	if err != nil {
		return nil, err
	}
	return append(rows, growthRow{by, name, size, c}), nil
}

// growthText is the section: the costs, and the exponents fitted to them.
func growthText(rows []growthRow) string {
	var t strings.Builder
	t.WriteString("## Growth\n\n")
	t.WriteString("Costs of commands with all defaults by the bytes of weights, and by the nodes of a graph with a weight of 256 bytes for every ten nodes (`internal/dev/scale`, kind blocks). One run each, page cache warm.\n\n")
	t.WriteString("![time and memory by size](growth.svg)\n\n")
	t.WriteString("| by | size | command | s | CPU s | peak MiB |\n|---|---:|---|---:|---:|---:|\n")
	var order [][2]string
	of := map[[2]string][]growthRow{}
	for _, r := range rows {
		fmt.Fprintf(&t, "| %s | %.0f | %s | %.2f | %.2f | %.0f |\n", r.by, r.size, r.command, r.Seconds, r.cpu(),
			r.Peak)
		k := [2]string{r.by, r.command}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], r)
	}
	t.WriteString("\nExponents: the slopes of lines through the logarithms of the three largest sizes, by least squares. 1 is linear.\n\n")
	t.WriteString("| by | command | of CPU time | of peak memory |\n|---|---|---:|---:|\n")
	for _, k := range order {
		top := of[k][max(0, len(of[k])-3):]
		fmt.Fprintf(&t, "| %s | %s | %.2f | %.2f |\n", k[0], k[1], exponent(top, cost.cpu),
			exponent(top, func(c cost) float64 { return c.Peak }))
	}
	return t.String()
}

// exponent is the slope of the line through the logarithms of size and figure, by least squares.
func exponent(rows []growthRow, figure func(cost) float64) float64 {
	var x, y, xx, xy float64
	n := float64(len(rows))
	for _, r := range rows {
		u, v := math.Log(r.size), math.Log(figure(r.cost))
		x, y, xx, xy = x+u, y+v, xx+u*u, xy+u*v
	}
	return (n*xy - x*y) / (n*xx - x*x)
}
