package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/report/benchmark"
)

// int4Forms are the forms of int4 weights that both runtimes run, in blocks of 32.
var int4Forms = []struct {
	name    string
	options []string
}{
	{"DequantizeLinear", []string{"--target", "ort"}},
	{"MatMulNBits", []string{"--form", "matmulnbits"}},
	{"MatMulNBits, level 4", []string{"--form", "matmulnbits", "--accuracy-level", "4"}},
}

// An int4Load is a model as it is run in some of the forms.
type int4Load struct {
	load
	shared string // path of the model among the shared ones, instead of a made one
	forms  []int  // of int4Forms
	large  bool   // left out of a quick run
}

var int4Loads = []int4Load{
	{load: load{model: bert, name: "BERT-base shape, 128 tokens", batch: 1, dims: []string{"seq=128"}},
		forms: []int{0}, large: true},
	{load: load{name: "MiniLM, 16 tokens", batch: 1},
		shared: "fixtures/models/transformer/minilm_l6_v2_vocab3086/model.onnx", forms: []int{0}},
	{load: load{name: "MiniLM, 16 tokens, batch 32", batch: 32},
		shared: "fixtures/models/transformer/minilm_l6_v2_vocab3086/model.onnx", forms: []int{0}},
	{load: load{model: llm, name: "1.2 B, one token", batch: 1, dims: []string{"seq=1"}}, forms: []int{0, 1, 2},
		large: true},
}

// engineInt4 compares models with int4 weights with ONNX Runtime: time, memory, and the tokens per second of decoding.
func (b *bench) engineInt4(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "## Weights of int4, %s threads\n\n", engineThreads)
	fmt.Fprintf(&t, "The embedded engine and ONNX Runtime by `mcompress bench`, interleaved, processes of each: %d. Minimum time of all runs and median of the processes'\n", b.runs)
	t.WriteString("medians, in ms; growth of a process at its peak, in MiB. The fraction is of the bandwidth at which both threads read the bytes of the file in memory. ONNX Runtime\n")
	t.WriteString("multiplies int8 activations for DequantizeLinear by default, as with accuracy level 4.\n\n")
	t.WriteString("| model | form | engine, minimum | ORT, minimum | engine ÷ ORT | engine, median | ORT, median | engine ÷ ORT | engine, MiB | ORT, MiB | engine, fraction | ORT, fraction |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, l := range int4Loads {
		if l.large && b.quick {
			continue
		}
		for _, form := range l.forms {
			row, err := b.int4Row(ctx, l, form)
			if err != nil {
				return "", fmt.Errorf("%s: %w", l.name, err)
			}
			t.WriteString(row)
		}
	}
	decoding, err := b.decoding(ctx)
	return t.String() + decoding, err
}

func (b *bench) int4Row(ctx context.Context, l int4Load, form int) (string, error) {
	in := filepath.Join(b.shared, l.shared)
	if l.shared == "" {
		var err error
		if in, err = b.file(ctx, l.model); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(b.dir, "int4")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, strings.TrimSuffix(filepath.Base(in), ".onnx")+".weight-int4.onnx")
	args := []string{"quantize", in, "-o", dir + "/", "--method", "weight-int4", "--no-verify", "--report", "none",
		"--quiet"}
	if _, err := b.stdout(ctx, b.tool, append(args, int4Forms[form].options...)...); err != nil {
		return "", err
	}
	ours, theirs, err := b.turns(ctx, path, l.load)
	if err != nil {
		return "", err
	}
	read, err := readSeconds(parts(path))
	if err != nil {
		return "", err
	}
	e, o := ofMedianTime(ours), ofMedianTime(theirs)
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f | %.2f | %.2f |\n", l.name,
		int4Forms[form].name,
		1e3*e.Min, 1e3*o.Min, e.Min/o.Min, 1e3*e.Median, 1e3*o.Median, e.Median/o.Median, grownMiB(e), grownMiB(o),
		read/e.Min, read/o.Min), nil
}

func grownMiB(m *benchmark.Measure) float64 { return float64(m.Peak-m.Baseline) / (1 << 20) }

// readSeconds is the minimum time in which two threads read the bytes of some files that are in memory.
func readSeconds(paths []string) (float64, error) {
	var all []byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		all = append(all, data...)
	}
	best := time.Hour
	for range 10 {
		start := time.Now()
		var w sync.WaitGroup
		for half := range 2 {
			w.Go(func() { wordSum(all[half*len(all)/2 : (half+1)*len(all)/2]) })
		}
		w.Wait()
		best = min(best, time.Since(start))
	}
	return best.Seconds(), nil
}

// wordSum is the sum of the words of 64 bits, eight at a time. Inlined, it would read nothing, as its result is not
// used.
//
//go:noinline
func wordSum(b []byte) (sum uint64) {
	for ; len(b) >= 64; b = b[64:] {
		for i := 0; i < 64; i += 8 {
			sum += binary.LittleEndian.Uint64(b[i:])
		}
	}
	return sum
}

// decoding compares language models that decode with a KV cache.
func (b *bench) decoding(ctx context.Context) (string, error) {
	shape := "1.2B"
	if b.quick {
		shape = "tiny"
	}
	dir, _, err := b.languageSource(ctx, shape)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	var t strings.Builder
	t.WriteString("\nDecoding by `mcompress bench --decode 64`: tokens per second of a prompt of 128 tokens, and of 64 tokens one by one with a KV cache, the best of\n")
	fmt.Fprintf(&t, "%d processes of each, interleaved. The model is one of the section *Language models in int4*.\n\n", b.runs)
	t.WriteString("| model | accuracy level | engine, prompt | ORT, prompt | engine, decode | ORT, decode | engine ÷ ORT, decode |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, level := range []string{"0", "4"} {
		out := filepath.Join(dir, "level"+level)
		if _, err := b.stdout(ctx, b.tool, append(languageOptions(out, filepath.Join(dir, "fp32", "model.onnx")),
			"--accuracy-level", level)...); err != nil {
			return "", err
		}
		written, err := filepath.Glob(filepath.Join(out, "*.onnx"))
		if err != nil || len(written) != 1 {
			return "", fmt.Errorf("%s: %d models, want 1: %v", out, len(written), err)
		}
		prompt, decode := map[string]float64{}, map[string]float64{}
		for range b.runs {
			for _, backend := range []string{latency.Embedded, latency.ORT} {
				m, err := b.timed(ctx, written[0], backend, load{batch: 1}, "--decode", "64")
				if err != nil {
					return "", err
				}
				prompt[backend], decode[backend] = max(prompt[backend], m.Prompt), max(decode[backend], m.Decode)
			}
		}
		e, o := latency.Embedded, latency.ORT
		fmt.Fprintf(&t, "| %s | %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", shape, level, prompt[e], prompt[o],
			decode[e], decode[o], decode[e]/decode[o])
	}
	return t.String(), nil
}
