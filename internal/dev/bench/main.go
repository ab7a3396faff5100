// Command bench measures mcompress and its peers, in one run on one machine, and
// writes docs/benchmarks.md. Seconds differ from machine to machine: what counts are
// the ratios within a run.
//
// It makes its models in .bench by the shared makers, which takes some minutes the
// first time and 6 GB; -large adds a model of 30 GB.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{}
	flag.StringVar(&b.dir, "dir", ".bench", "folder for models and outputs")
	flag.StringVar(&b.shared, "shared", env("MCOMPRESS_SHARED", "../shared"), "folder of the shared tools and models")
	flag.StringVar(&b.python, "python", env("MCOMPRESS_PYTHON", ".venv/bin/python"),
		"interpreter with the pinned packages")
	flag.IntVar(&b.runs, "runs", 5, "runs of each command; medians count")
	flag.BoolVar(&b.large, "large", false, "measure a model of 30 GB too, which takes 40 GB of disk")
	flag.StringVar(&b.torch, "torch", ".venv-torch/bin/python",
		"interpreter with PyTorch, for the sections of training")
	flag.StringVar(&b.genai, "genai", ".zoo/genai/bin/python",
		"interpreter with onnxruntime-genai, for the section of language models")
	flag.StringVar(&b.deepsparse, "deepsparse", ".venv-deepsparse/bin/python",
		"interpreter with DeepSparse, for the section sparse-engine")
	flag.BoolVar(&b.quick, "quick", false, "train for a few steps only, to see that it works (the numbers mean nothing), and compare quantizers and runtimes on small models")
	flag.IntVar(&b.jobs, "jobs", 1, "number of trainings at a time in the section defaults")
	flag.DurationVar(&b.limit, "limit", 0, "duration after which the section defaults ends with the results so far; the next run continues")
	trial := flag.String("trial", "", "run a training of this JSON `text` and print the result: a process of the sections of training")
	only := flag.String("only", "", "comma-separated `sections` to run; all if empty")
	out := flag.String("o", "docs/benchmarks.md", "file to write")
	flag.Parse()
	if *trial != "" {
		if err := runTrial(ctx, *trial); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := b.run(ctx, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func env(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// sections are the tables in their order.
var sections = []struct {
	name  string
	make  func(*bench, context.Context) (string, error)
	named bool // runs only if -only names it
}{
	{"speed", (*bench).speed, false},
	{"large", (*bench).largest, false},
	{"growth", (*bench).growth, true},
	{"size", (*bench).sizes, false},
	{"prune", (*bench).prune, false},
	{"sparse", (*bench).sparse, false},
	{"kernels", (*bench).kernels, false},
	{"models", (*bench).models, false},
	{"gemm", (*bench).gemm, false},
	{"engine", (*bench).engine, false},
	{"engine-memory", (*bench).engineMemory, false},
	{"sparse-engine", (*bench).sparseEngine, true},
	{"engine-int4", (*bench).engineInt4, true},
	{"sparse-recipe", (*bench).sparseRecipe, true},
	{"train", (*bench).train, true},
	{"train-memory", (*bench).layerLog, true},
	{"train-savings", (*bench).savings, true},
	{"train-planned", (*bench).planned, true},
	{"train-smallest", (*bench).smallest, true},
	{"train-storage", (*bench).storageCPU, true},
	{"train-budget", (*bench).budget, true},
	{"distill", (*bench).distill, true},
	{"hinton", (*bench).hinton, true},
	{"lenet", (*bench).lenet, true},
	{"iterative", (*bench).iterative, true},
	{"deep-compression", (*bench).deepCompression, true},
	{"finetune", (*bench).finetune, true},
	{"qat", (*bench).qat, true},
	{"defaults", (*bench).defaults, true},
	{"quality", (*bench).quality, true},
	{"real-quality", (*bench).realQuality, true},
	{"auto", (*bench).auto, true},
	{"language", (*bench).language, true},
	{"perplexity", (*bench).perplexity, true},
	{"palette", (*bench).palette, true},
	{"palette-speed", (*bench).paletteSpeed, true},
	{"prune-samples", (*bench).pruneSamples, true},
	{"prune-heads", (*bench).pruneHeads, true},
	{"prune-layers", (*bench).pruneLayers, true},
	{"prune-channel", (*bench).pruneChannel, true},
	{"pack", (*bench).pack, true},
	{"pack-speed", (*bench).packSpeeds, true},
	{"pack-large", (*bench).packLarge, true},
	{"fleet", (*bench).fleet, true},
}

// A bench is one run.
type bench struct {
	dir, shared, python string
	runs                int
	large, quick        bool
	torch, genai        string // interpreters
	deepsparse          string // likewise
	jobs                int
	limit               time.Duration
	tool                string // the built binary
}

func (b *bench) run(ctx context.Context, only, out string) error {
	if err := os.MkdirAll(b.trainFile(""), 0o755); err != nil {
		return err
	}
	b.tool = filepath.Join(b.dir, "mcompress")
	if o, err := exec.CommandContext(ctx, "go", "build", "-o", b.tool, "./cmd/mcompress").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, last(string(o)))
	}
	made := map[string]string{}
	for _, s := range sections {
		named := slices.Contains(strings.Split(only, ","), s.name)
		if !named && (only != "" || s.named) || s.name == "large" && !b.large {
			continue
		}
		t, err := s.make(b, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(t)
		made[s.name] = begin(s.name) + t + "\nProcessor: " + processor() + ".\n" + end(s.name)
		if err := b.write(ctx, out, made); err != nil {
			return err
		}
	}
	return nil
}

// write writes the sections that this run made; others are left as they are in the file.
func (b *bench) write(ctx context.Context, out string, made map[string]string) error {
	doc, err := os.ReadFile(out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	text, err := b.head(ctx)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if t, ok := made[s.name]; ok {
			text += t
		} else {
			text += section(string(doc), s.name)
		}
	}
	return os.WriteFile(out, []byte(text), 0o644)
}

func begin(name string) string { return "<!-- " + name + " -->\n" }
func end(name string) string   { return "<!-- /" + name + " -->\n\n" }

// section is the text of doc between name's marks, marks included.
func section(doc, name string) string {
	i, j := strings.Index(doc, begin(name)), strings.Index(doc, end(name))
	if i < 0 || j < i {
		return ""
	}
	return doc[i : j+len(end(name))]
}
