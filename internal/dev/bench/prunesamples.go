package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sampledModels are the shared models with real data that samples prune.
var sampledModels = []string{
	"vision/mnist_cntk", "vision/mnist_cnn_max3", "vision/mnist_softmax_head", "vision/mnist_sigmoid",
	"transformer/mnist_self_attention", "text/magika_v3_3",
	"transformer/minilm_l6_v2_vocab3086",
}

// A sampledAmount is the options of a row, those that realquality.py names a peer's result by, the method that prunes
// so by magnitude, and the fraction of zeros.
type sampledAmount struct {
	options, theirs, magnitude string
	zeros                      float64
}

var sampledAmounts = []sampledAmount{{"--amount 0.5", "0.5", "l1", 0.5}, {"--amount 0.6", "0.6", "l1", 0.6},
	{"--pattern 2:4", "2 4", "nm", 0.5}}

// A sampledTable is rows of the same columns, which are methods with their options.
type sampledTable struct {
	title   string
	names   []string // of the columns
	amounts []sampledAmount
	columns func(a sampledAmount) []string
}

var sampledTables = []sampledTable{
	{"", []string{"magnitude", "wanda", "sparsegpt", "onnxsim wanda", "onnxsim sparsegpt"}, sampledAmounts,
		func(a sampledAmount) []string {
			return []string{a.magnitude, "wanda", "sparsegpt", "onnxsim wanda " + a.theirs,
				"onnxsim sparsegpt " + a.theirs}
		}},
	{"Distributions of `--amount` over weights:", allocated, sampledAmounts[:2],
		func(sampledAmount) []string { return allocated }},
}

// allocated are methods with each distribution.
var allocated = []string{"wanda", "wanda --allocate owl", "wanda --allocate sensitivity", "sparsegpt",
	"sparsegpt --allocate owl", "sparsegpt --allocate sensitivity"}

// A sampledPruning is the output SQNR of results by model, options and method. Those that exist are not measured again.
type sampledPruning struct {
	*bench
	*results
	folder string // of samples
}

// pruneSamples compares pruning by samples with pruning by magnitude, and with that of onnxsim.
func (b *bench) pruneSamples(ctx context.Context) (string, error) {
	r, err := openResults(b.trainFile("prune-samples.txt"))
	if err != nil {
		return "", err
	}
	s := &sampledPruning{b, r, filepath.Join(b.dir, "prune-samples")}
	defer os.RemoveAll(s.folder)
	if err := b.realSamples(ctx, s.folder); err != nil {
		return "", err
	}
	for _, table := range sampledTables {
		for _, name := range sampledModels {
			if err := s.measure(ctx, name, table); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return s.page(), nil
}

// page is the section of the document.
func (s *sampledPruning) page() string {
	var t strings.Builder
	t.WriteString("## Pruning by samples\n\nMatrices and filters (`--only 'op:{MatMul,Gemm,Conv}'`), pruned by magnitude (`l1`, or `nm` for 2:4), `wanda` and `sparsegpt`, and by the methods\n")
	fmt.Fprintf(&t, "of the same names of onnxsim %s (`apply_wanda_pruning`, `apply_sparsegpt_pruning`) with the same calibration samples; output SQNR in dB on held-out\nsamples, in ONNX Runtime. onnxsim gets models that its `simplify` folded.\n\n", pinned("onnxsim"))
	for _, table := range sampledTables {
		if table.title != "" {
			t.WriteString("\n" + table.title + "\n\n")
		}
		t.WriteString("| model | amount | " + strings.Join(table.names, " | ") + " |\n|---|---|" +
			strings.Repeat("---:|", len(table.names)) + "\n")
		for _, name := range sampledModels {
			for _, a := range table.amounts {
				fmt.Fprintf(&t, "| %s | `%s` |", filepath.Base(name), a.options)
				for _, c := range table.columns(a) {
					t.WriteString(s.cell(sampledName(name, a, c), a.zeros))
				}
				t.WriteString("\n")
			}
		}
	}
	return t.String()
}

// cell is an output SQNR, with the fraction of zeros where a peer pruned fewer elements.
func (s *sampledPruning) cell(key string, want float64) string {
	x, _ := s.known(key)
	if zeros, ok := s.known(key + zerosOf); ok && zeros < want-0.01 {
		return fmt.Sprintf(" %.2f (%.1f %% zeros) |", x, 100*zeros)
	}
	return fmt.Sprintf(" %.2f |", x)
}

// zerosOf is the end of the names of fractions of zeros.
const zerosOf = ", zeros"

func sampledName(model string, a sampledAmount, column string) string {
	return filepath.Base(model) + ", " + a.options + ", " + column
}

// measure prunes one model as often as results of a table do not exist, and by all methods and amounts of the peer if
// one of its results does not.
func (s *sampledPruning) measure(ctx context.Context, name string, table sampledTable) error {
	model, samples := filepath.Join(s.shared, "fixtures", "models", name, "model.onnx"),
		filepath.Join(s.folder, filepath.Base(name))
	call, keys := []string{"evaluate", model, samples, s.folder}, map[string]string{}
	for i, a := range table.amounts {
		for j, c := range table.columns(a) {
			key := sampledName(name, a, c)
			if _, ok := s.known(key); ok {
				continue
			}
			if theirs, ok := strings.CutPrefix(c, "onnxsim "); ok {
				call[0], keys[theirs] = "pruners", key
				continue
			}
			out := filepath.Join(s.folder, fmt.Sprintf("%d.%d.onnx", i, j))
			if err := s.pruned(ctx, model, samples+".npz", out, c, a.options); err != nil {
				return err
			}
			call, keys[key] = append(call, key+"="+out), key
		}
	}
	if len(keys) == 0 {
		return nil
	}
	all, err := s.outcomes(ctx, call)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Why != "" {
			return fmt.Errorf("%s: %s", o.Name, o.Why)
		}
		key := keys[o.Name]
		if key == "" {
			continue
		}
		if o.Zeros != nil {
			if err := s.add(key+zerosOf, *o.Zeros); err != nil {
				return err
			}
		}
		if err := s.add(key, o.decibels()); err != nil {
			return err
		}
	}
	return nil
}

// pruned prunes a model by a method and its options. Methods by magnitude take no samples.
func (s *sampledPruning) pruned(ctx context.Context, model, data, out, method, amount string) error {
	args := slices.Concat([]string{"prune", model, "-o", out, "--method"}, strings.Fields(method),
		strings.Fields(amount), []string{"--only", "op:{MatMul,Gemm,Conv}"})
	if method != "l1" && method != "nm" {
		args = append(args, "--data", data)
	}
	_, err := s.do(ctx, args...)
	return err
}
