package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/report/benchmark"
)

var (
	cnn         = model{name: "ResNet18 shape, 47 MB", path: "cnn.onnx", maker: []string{"cnn"}}
	mobilenetV2 = model{name: "MobileNetV2 shape, 14 MB", path: "mobilenet.onnx", net: "mobilenet",
		netSizes: []string{"224", "1000"}}
	mobilenet96 = model{name: "MobileNetV2 shape of small images, 9 MB", path: "mobilenet96.onnx", net: "mobilenet",
		netSizes: []string{"96", "10"}}
	decoder = model{name: "decoder of 50 M parameters", path: "decoder/decoder.onnx", external: true,
		maker: []string{"llm", "--hidden", "512", "--layers", "8", "--vocab", "16000", "--ffn", "2048", "--heads", "8"}}
)

// A load is a model as it is run.
type load struct {
	model
	shared string // folder among the shared models, in place of a model of the makers
	name   string
	batch  int
	dims   []string
	int8   bool // quantized by mcompress to dynamic int8
	large  bool // left out with -quick
}

// loads are what both runtimes run.
var loads = []load{
	{model: mlp, name: "MLP", batch: 1},
	{model: bert, name: "BERT-base shape, 128 tokens", batch: 1, dims: []string{"seq=128"}, large: true},
	{model: cnn, name: "ResNet18 shape", batch: 1},
	{model: cnn, name: "ResNet18 shape, batch 8", batch: 8},
	{model: mobilenetV2, name: "MobileNetV2 shape, 224×224", batch: 1},
	{model: mobilenet96, name: "MobileNetV2 shape, 96×96", batch: 1},
	{shared: "vision/yolox_nano", name: "YOLOX-nano", batch: 1},
	{shared: "transformer/minilm_l6_v2_vocab3086", name: "MiniLM, 96 tokens", batch: 1, dims: []string{"seq=96"}},
	{shared: "transformer/minilm_l6_v2_vocab3086", name: "MiniLM, batch 32, 16 tokens", batch: 32,
		dims: []string{"seq=16"}},
	{shared: "text/byte_bidi_lstm", name: "bidirectional LSTM, 128 bytes", batch: 1, dims: []string{"length=128"}},
	{shared: "transformer/gpt2_tiny_fp32", name: "GPT-2 of 5 small layers, prompt of 128 tokens", batch: 1,
		dims: []string{"seq_len=128", "total_seq_len=128", "past_seq_len=0"}},
	{model: decoder, name: "decoder of 50 M parameters, prompt of 128 tokens", batch: 1, dims: []string{"seq=128"},
		large: true},
	{model: mlp, name: "MLP, dynamic int8", batch: 1, int8: true},
	{model: bert, name: "BERT-base shape, 128 tokens, dynamic int8", batch: 1, dims: []string{"seq=128"}, int8: true,
		large: true},
	{shared: "transformer/minilm_l6_v2_vocab3086", name: "MiniLM, 96 tokens, dynamic int8", batch: 1,
		dims: []string{"seq=96"}, int8: true},
	{shared: "quantized/mobilenetv2_qdq", name: "MobileNetV2, QDQ", batch: 1},
}

// engineThreads is how many threads either runtime has.
const engineThreads = "2"

// eachLoad calls f with the loads and their files.
func (b *bench) eachLoad(ctx context.Context, f func(l load, path string) error) error {
	for _, l := range loads {
		if b.quick && l.large {
			continue
		}
		path, err := b.prepared(ctx, l)
		if err == nil {
			err = f(l, path)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// engine compares the times of a run, and of loading and the first run, with ONNX Runtime's.
func (b *bench) engine(ctx context.Context) (string, error) {
	var runs, starts strings.Builder
	fmt.Fprintf(&runs, "## Latency, %s threads\n\n", engineThreads)
	fmt.Fprintf(&runs, "The embedded engine and ONNX Runtime by `mcompress bench`, interleaved, processes of each: %d. Minimum time of all\n", b.some(b.runs))
	runs.WriteString("runs and median of the processes' medians, in ms.\n\n" + versusORT)
	starts.WriteString("\nLoading the model and its first run, files in the page cache: minimum and median of the processes, in ms.\n\n" + versusORT)
	err := b.eachLoad(ctx, func(l load, path string) error {
		ours, theirs, err := b.turns(ctx, path, l)
		if err != nil {
			return err
		}
		engine, ort := timingOf(ours), timingOf(theirs)
		runs.WriteString(versusRow(l.name, engine.runs, ort.runs))
		starts.WriteString(versusRow(l.name, engine.start, ort.start))
		return nil
	})
	return runs.String() + starts.String(), err
}

// versusORT is the head of a table of versusRow.
const versusORT = "| model | engine, minimum | ORT, minimum | engine ÷ ORT | engine, median | ORT, median | engine ÷ ORT |\n|---|---:|---:|---:|---:|---:|---:|\n"

// versusRow compares the engine with ONNX Runtime.
func versusRow(name string, e, o seconds) string {
	return fmt.Sprintf("| %s | %.3f | %.3f | %.2f | %.3f | %.3f | %.2f |\n", name,
		1e3*e.least, 1e3*o.least, e.least/o.least, 1e3*e.median, 1e3*o.median, e.median/o.median)
}

// seconds are those of several processes.
type seconds struct{ least, median float64 }

// secondsOf is the minimum and the median of one number per process.
func secondsOf(all []float64) seconds {
	slices.Sort(all)
	return seconds{all[0], all[len(all)/2]}
}

// A timing is the runs of a backend, and loading with the first run.
type timing struct{ runs, start seconds }

func timingOf(ms []*benchmark.Measure) timing {
	var least, medians, starts []float64
	for _, m := range ms {
		least, medians, starts = append(least, m.Min), append(medians, m.Median), append(starts, m.Load+m.First)
	}
	return timing{seconds{slices.Min(least), secondsOf(medians).median}, secondsOf(starts)}
}

// A candidate is measured in a process of its own.
type candidate struct {
	name string
	run  func() (*benchmark.Measure, error)
}

// candidate is a model in a backend.
func (b *bench) candidate(ctx context.Context, name, path, backend string, l load) candidate {
	return candidate{name, func() (*benchmark.Measure, error) { return b.timed(ctx, path, backend, l, b.pace()...) }}
}

// interleaved measures all in turn, as often as requested.
func (b *bench) interleaved(candidates []candidate) (map[string][]*benchmark.Measure, error) {
	all := map[string][]*benchmark.Measure{}
	for range b.some(b.runs) {
		for _, c := range candidates {
			m, err := c.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			all[c.name] = append(all[c.name], m)
		}
	}
	return all, nil
}

// turns measures both backends.
func (b *bench) turns(ctx context.Context, path string, l load) (engine, ort []*benchmark.Measure, err error) {
	var both []candidate
	for _, backend := range []string{latency.Embedded, latency.ORT} {
		both = append(both, b.candidate(ctx, backend, path, backend, l))
	}
	all, err := b.interleaved(both)
	return all[latency.Embedded], all[latency.ORT], err
}

// prepared is the file of l's model.
func (b *bench) prepared(ctx context.Context, l load) (string, error) {
	in := filepath.Join(b.shared, "fixtures", "models", l.shared, "model.onnx")
	if l.shared == "" {
		var err error
		if in, err = b.file(ctx, l.model); err != nil {
			return "", err
		}
	}
	if !l.int8 {
		return in, nil
	}
	out := filepath.Join(b.dir, strings.ReplaceAll(cmp.Or(l.shared, strings.TrimSuffix(l.path, ".onnx")), "/", "-")+
		".int8.onnx")
	// Made anew each time: it is the work of this program.
	o, err := exec.CommandContext(ctx, b.tool, "quantize", in, "-o", out, "--no-verify", "--report", "none",
		"--quiet").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("quantize %s: %w: %s", in, err, last(string(o)))
	}
	return out, nil
}

// pace is how long each process runs a model.
func (b *bench) pace() []string {
	if b.quick {
		return []string{"--runs", "3", "--time", "0.2s"}
	}
	return []string{"--runs", "5", "--time", "1s"}
}

// timed measures one backend in a process of its own.
func (b *bench) timed(ctx context.Context, path, backend string, l load, more ...string) (*benchmark.Measure, error) {
	args := []string{"--json", "--workers", engineThreads, "bench", path, "--backend", backend,
		"--batch", strconv.Itoa(l.batch)}
	if backend == latency.ORT {
		lib, err := b.runtimeLibrary()
		if err != nil {
			return nil, err
		}
		args = append(args, "--ort-lib", lib)
	}
	for _, d := range l.dims {
		args = append(args, "--dim", d)
	}
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, b.tool, append(args, more...)...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, last(complaint.String()))
	}
	var ms []*benchmark.Measure
	if err := json.Unmarshal(out, &ms); err != nil {
		return nil, err
	}
	if len(ms) != 1 {
		return nil, fmt.Errorf("%d measurements, want 1", len(ms))
	}
	return ms[0], nil
}

// runtimeLibrary is the folder of ONNX Runtime's library among the interpreter's packages.
func (b *bench) runtimeLibrary() (string, error) {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(b.python), "..", "lib", "python*", "site-packages",
		"onnxruntime", "capi"))
	if err != nil || len(found) == 0 {
		return os.Getenv("MCOMPRESS_ORT_LIB"), err
	}
	return found[0], nil
}
