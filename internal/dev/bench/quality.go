package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed quality.py
var qualityScript string

//go:embed requirements-quality.txt
var qualityRequirements string

// pinned is the version of a peer.
func pinned(name string) string {
	_, after, _ := strings.Cut(qualityRequirements, "\n"+name+"==")
	version, _, _ := strings.Cut(after, " ")
	return version
}

// A match is a way to quantize that both sides have: how they are called, and on which model.
type match struct {
	what    string
	model   model
	samples int        // for calibration, 0 for none
	ours    []string   // of quantize
	theirs  [][]string // of peers.py, or nncf of quality.py, without files; the rows below ours
	names   []string   // of theirs
}

// matches are the rows of the table.
var matches = []match{
	{what: "int4, round to nearest", model: bert, ours: []string{"--method", "weight-int4"},
		theirs: [][]string{{"nbits", "algo=default"}, {"nbits", "algo=default", "symmetric=0"}, {"nncf"}},
		names:  []string{"ONNX Runtime MatMulNBits", "… asymmetric", "NNCF, group 32"}},
	{what: "int4, HQQ", model: bert, ours: []string{"--method", "weight-int4", "--algo", "hqq"},
		theirs: [][]string{{"nbits", "algo=hqq"}}, names: []string{"ONNX Runtime HQQ"}},
	{what: "… float zero points", model: bert, ours: []string{"--method", "weight-int4", "--algo", "hqq",
		"--form", "matmulnbits"}},
	{what: "int4, GPTQ, 8 × 128 tokens", model: bert, samples: 8,
		ours:   []string{"--method", "weight-int4", "--algo", "gptq"},
		theirs: [][]string{{"nbits", "algo=gptq", "samples=8"}},
		names:  []string{"ONNX Runtime GPTQ"}},
	{what: "dynamic int8", model: bert, ours: []string{"--method", "dynamic-int8"},
		theirs: [][]string{{"dynamic", "per_channel=1"}}, names: []string{"ONNX Runtime, per channel"}},
	{what: "dynamic int8, SmoothQuant, bias correction", model: bert, samples: 8,
		ours: []string{"--method", "dynamic-int8", "--smooth", "0.5", "--bias-correction"}},
	{what: "float16", model: bert, ours: []string{"--method", "float16"}, theirs: [][]string{{"float16"}},
		names: []string{"onnxconverter-common"}},
	{what: "static int8, 32 samples, MinMax", model: cnn, samples: 32,
		ours:   []string{"--method", "static-int8", "--calibrator", "minmax"},
		theirs: [][]string{{"static", "samples=32", "per_channel=1", "method=MinMax"}},
		names:  []string{"ONNX Runtime"}},
	{what: "static int8, 32 samples, entropy", model: cnn, samples: 32,
		ours:   []string{"--method", "static-int8", "--calibrator", "entropy"},
		theirs: [][]string{{"static", "samples=32", "per_channel=1", "method=Entropy"}},
		names:  []string{"ONNX Runtime"}},
	{what: "static int8, 32 samples, the default", model: cnn, samples: 32, ours: []string{"--method", "static-int8"}},
	{what: "int4, round to nearest", model: llm, ours: []string{"--method", "weight-int4"},
		theirs: [][]string{{"nbits", "algo=default", "external=1"}, {"nncf"}},
		names:  []string{"ONNX Runtime MatMulNBits", "NNCF, group 32"}},
	{what: "float16", model: llm, ours: []string{"--method", "float16"},
		theirs: [][]string{{"float16", "external=1"}}, names: []string{"onnxconverter-common"}},
}

// quality compares what quantizers make, and what that takes.
func (b *bench) quality(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Quantizers compared\n\n")
	t.WriteString("`--report none --no-verify --digest none --no-sync --workers 2`; median seconds, peak resident memory. SQNR is that of the first output and the lowest of any output in ONNX Runtime, on four\n")
	t.WriteString("inputs that are not calibration data; latency is the minimum of 25 runs on two threads. Weights are random: the SQNR ranks methods and does not predict accuracy.\n\n")
	t.WriteString("| method | model | tool | s | peak MiB | file MB | SQNR, dB | lowest | latency, ms | time ÷ mcompress |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, m := range matches {
		rows, err := b.match(ctx, m)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.what, err)
		}
		t.WriteString(rows)
	}
	return t.String(), nil
}

// match runs both sides on one model.
func (b *bench) match(ctx context.Context, m match) (string, error) {
	in, err := b.file(ctx, m.model)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.dir, "quality")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	ours := subject{name: "mcompress", out: filepath.Join(folder, "ours.onnx"), runs: 3}
	args := slices.Concat([]string{b.tool, "quantize", in, "-o", ours.out, "--report", "none",
		"--no-verify", "--digest", "none", "--no-sync", "--workers", "2", "--quiet"}, m.ours)
	if m.samples > 0 {
		data := filepath.Join(folder, "samples.npz")
		if _, err := b.evaluate(ctx, "samples", in, data, fmt.Sprint(m.samples)); err != nil {
			return "", err
		}
		args = append(args, "--data", data)
	}
	ours.args = command("", args...).args
	subjects := []subject{ours}
	for i, call := range m.theirs {
		s := subject{name: m.names[i], out: filepath.Join(folder, fmt.Sprintf("theirs%d.onnx", i)), runs: 1}
		s.args = slices.Concat(call[:1], []string{in, s.out}, call[1:])
		if call[0] == "nncf" {
			s.args = command("", b.python, "-c", complete(qualityScript), "nncf", in, s.out).args
		}
		subjects = append(subjects, s)
	}
	got, err := b.medians(ctx, subjects)
	if err != nil {
		return "", err
	}
	if m.model.external {
		return matchRows(m, subjects, got, nil), nil
	}
	paths := []string{in}
	for _, s := range subjects {
		paths = append(paths, s.out)
	}
	text, err := b.evaluate(ctx, append([]string{"evaluate"}, paths...)...)
	if err != nil {
		return "", err
	}
	return matchRows(m, subjects, got, strings.Split(strings.TrimSpace(text), "\n")), nil
}

// matchRows are the lines of the table; models too large to be evaluated have no results.
func matchRows(m match, subjects []subject, got map[string]cost, evaluated []string) string {
	var t strings.Builder
	for i, s := range subjects {
		first, lowest, ms := "", "", ""
		if evaluated != nil {
			first, lowest, ms = evaluation(evaluated[i])
		}
		ratio := ""
		if i > 0 {
			ratio = fmt.Sprintf("%.1f", got[s.name].Seconds/got[subjects[0].name].Seconds)
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %.2f | %.0f | %.1f | %s | %s | %s | %s |\n", m.what, m.model.name, s.name,
			got[s.name].Seconds, got[s.name].Peak, float64(bytesOf(s.out))/1e6, first, lowest, ms, ratio)
	}
	return t.String()
}

// evaluation is a line of evaluate: decibels and milliseconds, or the reason why it does not run.
func evaluation(line string) (first, lowest, ms string) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) == 4 {
		return "does not run", "", ""
	}
	return fields[0], fields[1], fields[2]
}

// evaluate runs a part of quality.py and returns what it prints.
func (b *bench) evaluate(ctx context.Context, args ...string) (string, error) {
	return b.part(ctx, "quality.py", qualityScript, args)
}
