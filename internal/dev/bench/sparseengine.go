package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/report/benchmark"
)

//go:embed deepsparse.py
var deepsparseScript string

// A sparseNet is a network that is pruned and run.
type sparseNet struct {
	name    string
	file    func(b *bench, ctx context.Context) (string, error)
	batches []int
	dims    []string
}

var sparseNets = []sparseNet{
	{"MLP", makerFile(mlp), []int{1, 8, 32}, nil},
	{"ResNet18 shape", makerFile(cnn), []int{1, 8, 32}, nil},
	{"MobileNetV2 shape, 224×224", makerFile(mobilenetV2), []int{1, 8, 32}, nil},
	{"BERT-base shape, 128 tokens", makerFile(bert), []int{1, 8}, []string{"seq=128"}},
}

// sparsities are the fractions of zeros in every weight.
var sparsities = []string{"0.8", "0.9", "0.95"}

// The names of what is measured in addition to the sparse model in mcompress's engine.
const (
	denseEngine = "engine, dense"
	denseORT    = "ORT, dense"
	deepSparse  = "DeepSparse" // of the version in requirements-deepsparse.txt
)

func makerFile(m model) func(*bench, context.Context) (string, error) {
	return func(b *bench, ctx context.Context) (string, error) { return b.file(ctx, m) }
}

// sparseEngine compares the time of sparse models in the engine with that of dense ones, with ONNX Runtime and with
// DeepSparse.
func (b *bench) sparseEngine(ctx context.Context) (string, error) {
	fastest, medians, held := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	nets := sparseNets
	if b.quick {
		nets = nets[:len(nets)-1]
	}
	for _, n := range nets {
		if err := b.sparseRows(ctx, n, fastest, medians, held); err != nil {
			return "", fmt.Errorf("%s: %w", n.name, err)
		}
	}
	const columns = "| model | batch | zeros | engine, dense | engine, sparse | ORT, dense | DeepSparse | ORT ÷ sparse | dense ÷ sparse | DeepSparse ÷ sparse |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
	var t strings.Builder
	fmt.Fprintf(&t, "## Sparse models, %s threads\n\n", engineThreads)
	fmt.Fprintf(&t, "Random weights, pruned by `prune --method l1 --amount ZEROS`, which prunes each weight alike; the engine runs what `sparse` writes and\n"+
		"DeepSparse 1.8.0 the pruned model; the engine and ONNX Runtime run the dense model in float32. Interleaved, processes of each: %d, at least `bench %s`. Times in ms.\n\n", b.runs, strings.Join(b.pace(), " "))
	if b.quick {
		t.WriteString("This is a run with `-quick`, which leaves out BERT and batches: its times are no evidence.\n\n")
	}
	t.WriteString("Minimum time of all runs:\n\n" + columns + fastest.String() +
		"\nMedian of the processes' medians:\n\n" + columns + medians.String())
	t.WriteString("\nMemory: bytes of the file's tensors, bytes of weights in the engine after loading, seconds to load (minimum), and growth of the process at its peak in MiB, at batch 1.\n\n")
	t.WriteString("| model | zeros | tensors | weights | weights ÷ tensors | dense weights | load | dense load | growth | dense growth |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	return t.String() + held.String(), nil
}

// sparseRows adds the rows of a network to the tables.
func (b *bench) sparseRows(ctx context.Context, n sparseNet, fastest, medians, held *strings.Builder) error {
	dense, err := n.file(b, ctx)
	if err != nil {
		return err
	}
	pruned, stored, tensors := map[string]string{}, map[string]string{}, map[string]int64{}
	for _, zeros := range sparsities {
		pruned[zeros], stored[zeros] = b.trainFile("sparse."+zeros+".pruned.onnx"), b.trainFile("sparse."+zeros+".onnx")
		defer os.Remove(pruned[zeros])
		defer os.Remove(stored[zeros])
		if _, err := b.do(ctx, "prune", dense, "-o", pruned[zeros], "--method", "l1", "--amount", zeros); err != nil {
			return err
		}
		r, err := b.do(ctx, "sparse", pruned[zeros], "-o", stored[zeros])
		if err != nil {
			return err
		}
		tensors[zeros] = r.Totals.TensorBytes.After
	}
	for _, batch := range n.batches[:b.some(len(n.batches))] {
		l := load{batch: batch, dims: n.dims}
		candidates := []candidate{b.candidate(ctx, denseEngine, dense, latency.Embedded, l),
			b.candidate(ctx, denseORT, dense, latency.ORT, l)}
		for _, zeros := range sparsities {
			candidates = append(candidates, b.candidate(ctx, zeros, stored[zeros], latency.Embedded, l),
				candidate{deepSparse + zeros, func() (*benchmark.Measure,
					error) {
					return b.deepSparse(ctx, pruned[zeros], l)
				}})
		}
		all, err := b.interleaved(candidates)
		if err != nil {
			return err
		}
		got := map[string]*benchmark.Measure{}
		for name, ms := range all {
			got[name] = ofMedianTime(ms)
		}
		for _, zeros := range sparsities {
			name := fmt.Sprintf("| %s | %d | %s |", n.name, batch, percentage(zeros))
			row := func(t *strings.Builder, of func(*benchmark.Measure) float64) {
				e, s, o, d := of(got[denseEngine]), of(got[zeros]), of(got[denseORT]), of(got[deepSparse+zeros])
				fmt.Fprintf(t, "%s %.3f | %.3f | %.3f | %.3f | %.2f | %.2f | %.2f |\n", name, 1e3*e, 1e3*s, 1e3*o,
					1e3*d, o/s, e/s, d/s)
			}
			row(fastest, func(m *benchmark.Measure) float64 { return m.Min })
			row(medians, func(m *benchmark.Measure) float64 { return m.Median })
			if batch > 1 {
				continue
			}
			e, s := got[denseEngine], got[zeros]
			fmt.Fprintf(held, "| %s | %s | %d | %d | %.2f | %d | %.3f | %.3f | %.1f | %.1f |\n", n.name,
				percentage(zeros), tensors[zeros], s.Weights, float64(s.Weights)/float64(tensors[zeros]),
				e.Weights, s.Load, e.Load, mib(s.Peak-s.Baseline), mib(e.Peak-e.Baseline))
		}
	}
	return nil
}

// ofMedianTime has the minimum time of all processes, and the other figures of the process of median time.
func ofMedianTime(ms []*benchmark.Measure) *benchmark.Measure {
	slices.SortFunc(ms, func(x, y *benchmark.Measure) int { return cmp.Compare(x.Median, y.Median) })
	m := *ms[len(ms)/2]
	for _, other := range ms {
		m.Min = min(m.Min, other.Min)
	}
	return &m
}

// percentage is an amount such as 0.95 as "95 %".
func percentage(amount string) string {
	x, _ := strconv.ParseFloat(amount, 64)
	return fmt.Sprintf("%.0f %%", 100*x)
}

// deepSparse measures DeepSparse in a process of its own.
func (b *bench) deepSparse(ctx context.Context, path string, l load) (*benchmark.Measure, error) {
	text, err := b.stdout(ctx, b.deepsparse, slices.Concat([]string{"-c", deepsparseScript, path,
		strconv.Itoa(l.batch), engineThreads}, b.pace(), l.dims)...)
	if err != nil {
		return nil, err
	}
	m := &benchmark.Measure{}
	return m, json.Unmarshal([]byte(last(text)), m)
}
