package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A model is one that the shared makers make.
type model struct {
	name, what string
	path       string // in the bench's folder
	maker      []string
	external   bool
	peerRuns   int
}

var (
	mlp  = model{name: "MLP, 7.5 MB", path: "mlp.onnx", maker: []string{"mlp"}}
	bert = model{name: "BERT-base shape, 438 MB", path: "bert.onnx", maker: []string{"bert"}, peerRuns: 3}
	llm  = model{name: "1.2 B parameters, 4.8 GB", path: "llm/llm.onnx", external: true, peerRuns: 1,
		maker: []string{"llm", "--hidden", "2048", "--layers", "16", "--vocab", "32000", "--ffn", "8192", "--heads", "32"}}
	big = model{name: "6.7 B parameters, 27 GB", path: "7b/llm.onnx", external: true,
		maker: []string{"llm", "--hidden", "4096", "--layers", "32", "--vocab", "32000", "--ffn", "11008", "--heads", "32"}}
)

// file makes the model if it is not there, brings it into the page cache, and returns
// its path.
func (b *bench) file(ctx context.Context, m model) (string, error) {
	path := filepath.Join(b.dir, m.path)
	if _, err := os.Stat(path); err != nil {
		args := append([]string{filepath.Join(b.shared, "tools", "make_models.py")}, m.maker...)
		if out, err := exec.CommandContext(ctx, b.python, append(args, "-o", path)...).CombinedOutput(); err != nil {
			_ = os.Remove(path) // an incomplete file
			return "", fmt.Errorf("make %s: %w: %s", m.path, err, last(string(out)))
		}
	}
	for _, f := range parts(path) {
		if err := exec.CommandContext(ctx, "cat", f).Run(); err != nil {
			return "", err
		}
	}
	return path, nil
}

// parts are the files of the model at path.
func parts(path string) []string {
	if _, err := os.Stat(path + ".data"); err == nil {
		return []string{path, path + ".data"}
	}
	return []string{path}
}

func bytesOf(path string) int64 {
	n := int64(0)
	for _, p := range parts(path) {
		if st, err := os.Stat(p); err == nil {
			n += st.Size()
		}
	}
	return n
}

// The names of the subjects in the tables.
const (
	peerName  = "ONNX Runtime quantize_dynamic"
	fastName  = "mcompress --digest none --no-sync"
	plainName = "mcompress, with digest and fsync"
	catName   = "cat of the input"
	ddName    = "dd of the output's size"
)

func (b *bench) speed(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Dynamic int8, per channel\n\n")
	t.WriteString("`--report none --no-verify --workers 2`, page cache warm; median seconds, peak resident memory.\n\n")
	t.WriteString("| model | tool | s | peak MiB | output bytes | ORT time ÷ this time |\n|---|---|---:|---:|---:|---:|\n")
	for _, m := range []model{mlp, bert, llm} {
		rows, err := b.quantize(ctx, m)
		if err != nil {
			return "", err
		}
		t.WriteString(rows)
	}
	return t.String(), nil
}

// quantize measures one model with every tool that can take it.
func (b *bench) quantize(ctx context.Context, m model) (string, error) {
	in, err := b.file(ctx, m)
	if err != nil {
		return "", err
	}
	ours, theirs := filepath.Join(b.dir, "out", "ours.onnx"), filepath.Join(b.dir, "out", "theirs.onnx")
	if err := os.MkdirAll(filepath.Dir(ours), 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(filepath.Dir(ours))
	args := []string{b.tool, "quantize", in, "-o", ours, "--report", "none", "--no-verify", "--workers", "2", "--quiet"}
	subjects := []subject{
		command(fastName, append(args, "--digest", "none", "--no-sync")...),
		command(plainName, args...),
	}
	subjects[0].out, subjects[1].out = ours, ours
	peer := subject{name: peerName, runs: m.peerRuns, out: theirs, args: []string{"dynamic", in, theirs, "per_channel=1"}}
	if m.external {
		peer.args = append(peer.args, "external=1")
	}
	got, err := b.medians(ctx, subjects)
	if err != nil {
		return "", err
	}
	size := bytesOf(ours)
	if m.external {
		if err := b.copies(ctx, in, size, got); err != nil {
			return "", err
		}
	}
	// The peer comes last: what it takes of memory pushes the input out of the cache.
	theirCost, err := b.medians(ctx, []subject{peer})
	if err != nil {
		return "", err
	}
	got[peerName] = theirCost[peerName]
	return speedRows(m, got, size, bytesOf(theirs)), nil
}

// largest quantizes a model larger than memory, once: the peer cannot.
func (b *bench) largest(ctx context.Context) (string, error) {
	in, err := b.file(ctx, big)
	if err != nil {
		return "", err
	}
	out := filepath.Join(b.dir, "big.onnx")
	c, err := b.peer(ctx, command("", b.tool, "quantize", in, "-o", out, "--report", "none", "--no-verify", "--workers", "2", "--quiet").args...)
	if err != nil {
		return "", err
	}
	size := bytesOf(out)
	for _, f := range parts(out) {
		_ = os.Remove(f)
	}
	return fmt.Sprintf("## %s: larger than memory\n\n`dynamic-int8`, `--report none --no-verify --workers 2`, one run: %.0f s, peak resident memory %.0f MiB, %d → %d bytes.\n",
		big.name, c.Seconds, c.Peak, bytesOf(in), size), nil
}

// copies measures reading the input and writing the output.
func (b *bench) copies(ctx context.Context, in string, out int64, got map[string]cost) error {
	target := filepath.Join(b.dir, "out", "dd")
	dd := command(ddName, "dd", "if=/dev/zero", "of="+target, "bs=1M", fmt.Sprintf("count=%d", out>>20), "status=none")
	dd.out = target
	more, err := b.medians(ctx, []subject{
		command(catName, append([]string{"sh", "-c", `cat "$@" > /dev/null`, "sh"}, parts(in)...)...),
		dd,
	})
	for name, c := range more {
		got[name] = c
	}
	return err
}

func speedRows(m model, got map[string]cost, ours, theirs int64) string {
	var t strings.Builder
	for _, name := range []string{peerName, fastName, plainName, catName, ddName} {
		c, ok := got[name]
		if !ok {
			continue
		}
		size, ratio := "", ""
		switch name {
		case peerName:
			size = fmt.Sprint(theirs)
		case fastName, plainName:
			size = fmt.Sprint(ours)
			if p, ok := got[peerName]; ok {
				ratio = fmt.Sprintf("%.1f", p.Seconds/c.Seconds)
			}
		}
		fmt.Fprintf(&t, "| %s | %s | %.3f | %.0f | %s | %s |\n", m.name, name, c.Seconds, c.Peak, size, ratio)
	}
	if cat, ok := got[catName]; ok {
		floor := cat.Seconds + got[ddName].Seconds
		fmt.Fprintf(&t, "| %s | %s ÷ (cat + dd) | %.2f× | | | |\n", m.name, fastName, got[fastName].Seconds/floor)
	}
	return t.String()
}

func (b *bench) head(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, b.python, "-c",
		"import onnx, onnxruntime, sys; print('Python', sys.version.split()[0] + ', onnx', onnx.__version__ + ', onnxruntime', onnxruntime.__version__)").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w; make test installs it", b.python, err)
	}
	return fmt.Sprintf(`# Benchmarks

Generated by %s. Peers and mcompress ran in turn on one machine, one process each: %d cores, %s.
Seconds differ from machine to machine; only ratios within one run are comparable.

`, "`make bench`", runtime.NumCPU(), strings.TrimSpace(string(out))), nil
}
