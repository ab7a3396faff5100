package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed real.py
var realScript string

// script runs a part of real.py and returns what it prints.
func (b *bench) script(ctx context.Context, args ...string) (string, error) {
	return b.part(ctx, "real.py", realScript, args)
}

// sizes compares output sizes on the BERT shape, operators alike.
func (b *bench) sizes(ctx context.Context) (string, error) {
	in, err := b.file(ctx, bert)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Output size, BERT-base shape\n\n| operators | ONNX Runtime | mcompress |\n|---|---:|---:|\n")
	for _, row := range []struct{ what, ops, flag string }{
		{"MatMul and Gemm", "MatMul,Gemm", ""},
		{"… and embeddings", "MatMul,Gemm,Gather", "--embeddings"},
	} {
		theirs, ours := filepath.Join(b.dir, "theirs.onnx"), filepath.Join(b.dir, "ours.onnx")
		if _, err := b.script(ctx, "quantize", in, theirs, row.ops); err != nil {
			return "", err
		}
		args := []string{"quantize", in, "-o", ours, "--report", "none", "--no-verify", "--quiet"}
		if row.flag != "" {
			args = append(args, row.flag)
		}
		if out, err := exec.CommandContext(ctx, b.tool, args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		fmt.Fprintf(&t, "| %s | %d | %d |\n", row.what, bytesOf(theirs), bytesOf(ours))
		_ = os.Remove(theirs)
		_ = os.Remove(ours)
	}
	return t.String(), nil
}

// prune measures the global threshold over all weights of the large model.
func (b *bench) prune(ctx context.Context) (string, error) {
	in, err := b.file(ctx, llm)
	if err != nil {
		return "", err
	}
	out := filepath.Join(b.dir, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(out)
	args := []string{b.tool, "prune", in, "-o", filepath.Join(out, "p.onnx"), "--method", "l1-global",
		"--amount", "0.5", "--report", "none", "--no-verify", "--workers", "2", "--quiet"}
	const scan, whole, cp = "l1-global, scan only (--dry-run)", "l1-global, complete (--digest none --no-sync)", "cp"
	subjects := []subject{
		command(catName, append([]string{"sh", "-c", `cat "$@" > /dev/null`, "sh"}, parts(in)...)...),
		command(cp, append(append([]string{"cp"}, parts(in)...), out)...),
		command(scan, append(args, "--dry-run")...),
		command(whole, append(args, "--digest", "none", "--no-sync")...),
	}
	subjects[1].out, subjects[3].out = filepath.Join(out, "llm.onnx"), filepath.Join(out, "p.onnx")
	got, err := b.medians(ctx, subjects)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Global magnitude threshold, 1.2 B parameters\n\n| command | s | peak MiB |\n|---|---:|---:|\n")
	for _, name := range []string{catName, cp, scan, whole} {
		fmt.Fprintf(&t, "| %s | %.2f | %.0f |\n", name, got[name].Seconds, got[name].Peak)
	}
	fmt.Fprintf(&t, "| scan ÷ cat | %.2f× | |\n", got[scan].Seconds/got[catName].Seconds)
	fmt.Fprintf(&t, "| complete ÷ (1.5 × cp + scan) | %.2f× | |\n",
		got[whole].Seconds/(1.5*got[cp].Seconds+got[scan].Seconds))
	return t.String(), nil
}

// sparse gives the size of each form of one weight with 90 % zeros.
func (b *bench) sparse(ctx context.Context) (string, error) {
	in, out := filepath.Join(b.dir, "zeros.onnx"), filepath.Join(b.dir, "sparse.onnx")
	if _, err := b.script(ctx, "zeros", in); err != nil {
		return "", err
	}
	defer os.Remove(in)
	defer os.Remove(out)
	var t strings.Builder
	fmt.Fprintf(&t, "## One float32 weight, 1024×1024, 90 %% zeros\n\nDense: %d bytes. All formats are lossless: outputs are bit-identical.\n\n| format | file size, bytes |\n|---|---:|\n", bytesOf(in))
	for _, format := range []string{"coo", "csr", "bitmask", "delta", "auto"} {
		if o, err := exec.CommandContext(ctx, b.tool, "sparse", in, "-o", out, "--format", format, "--report", "none",
			"--no-verify", "--quiet").CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", format, err, o)
		}
		if _, err := b.script(ctx, "equal", in, out); err != nil {
			return "", err
		}
		fmt.Fprintf(&t, "| %s | %d |\n", format, bytesOf(out))
	}
	return t.String(), nil
}

// kernels compares each kernel with a copy of the same input, in one process.
func (b *bench) kernels(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchtime", "300ms",
		"-count", "3", "./internal/kernel").Output()
	if err != nil {
		return "", fmt.Errorf("kernel benchmarks: %w", err)
	}
	return "## Kernels\n\nBest of three runs on one core, GB/s of input.\n\n| benchmark | GB/s |\n|---|---:|\n" +
		bestSpeeds(string(out)), nil
}

// bestSpeeds are rows of the best speed of each Go benchmark in out.
func bestSpeeds(out string) string {
	best, names := map[string]float64{}, []string{}
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		for i := range f {
			if f[i] != "MB/s" || !strings.HasPrefix(f[0], "Benchmark") {
				continue
			}
			v, err := strconv.ParseFloat(f[i-1], 64)
			if err != nil {
				continue
			}
			name := strings.TrimPrefix(f[0], "Benchmark")
			if best[name] == 0 {
				names = append(names, name)
			}
			best[name] = max(best[name], v)
		}
	}
	var t strings.Builder
	for _, n := range names {
		fmt.Fprintf(&t, "| %s | %.2f |\n", n, best[n]/1000)
	}
	return t.String()
}

// models compares every shared real model with ONNX Runtime's quantizer.
func (b *bench) models(ctx context.Context) (string, error) {
	return b.script(ctx, "models", filepath.Join(b.shared, "fixtures", "models"), b.tool, filepath.Join(b.dir, "real"))
}
