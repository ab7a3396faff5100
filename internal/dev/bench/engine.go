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
)

var cnn = model{name: "ResNet18 shape, 47 MB", path: "cnn.onnx", maker: []string{"cnn"}}

// A load is a model as it is run.
type load struct {
	model
	name  string
	batch int
	dims  []string
	int8  bool // made dynamic int8 by mcompress
}

// loads are what both runtimes run.
var loads = []load{
	{model: mlp, name: "MLP", batch: 1},
	{model: bert, name: "BERT-base shape, 128 tokens", batch: 1, dims: []string{"seq=128"}},
	{model: cnn, name: "ResNet18 shape", batch: 1},
	{model: cnn, name: "ResNet18 shape, batch 8", batch: 8},
	{model: mlp, name: "MLP, dynamic int8", batch: 1, int8: true},
	{model: bert, name: "BERT-base shape, 128 tokens, dynamic int8", batch: 1, dims: []string{"seq=128"}, int8: true},
}

// engineThreads is how many threads either runtime has.
const engineThreads = "2"

// engine compares the time of a run with ONNX Runtime's.
func (b *bench) engine(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "## Latency, %s threads\n\n", engineThreads)
	fmt.Fprintf(&t, "The embedded engine and ONNX Runtime by `mcompress bench`, interleaved, processes of each: %d. Minimum time of all\n", b.runs)
	t.WriteString("runs and median of the processes' medians, in ms.\n\n")
	t.WriteString("| model | engine, minimum | ORT, minimum | engine ÷ ORT | engine, median | ORT, median | engine ÷ ORT |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, l := range loads {
		path, err := b.prepared(ctx, l)
		if err != nil {
			return "", err
		}
		pair, err := b.turns(ctx, path, l)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.name, err)
		}
		e, o := pair[latency.Embedded], pair[latency.ORT]
		fmt.Fprintf(&t, "| %s | %.3f | %.3f | %.2f | %.3f | %.3f | %.2f |\n", l.name,
			1e3*e.Min, 1e3*o.Min, e.Min/o.Min, 1e3*e.Median, 1e3*o.Median, e.Median/o.Median)
	}
	return t.String(), nil
}

// prepared is the file of l's model.
func (b *bench) prepared(ctx context.Context, l load) (string, error) {
	in, err := b.file(ctx, l.model)
	if err != nil || !l.int8 {
		return in, err
	}
	out := strings.TrimSuffix(in, ".onnx") + ".int8.onnx"
	// Made anew each time: it is the work of this program.
	o, err := exec.CommandContext(ctx, b.tool, "quantize", in, "-o", out, "--no-verify", "--report", "none", "--quiet").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("quantize %s: %w: %s", in, err, last(string(o)))
	}
	return out, nil
}

// turns measures both backends as often as requested.
func (b *bench) turns(ctx context.Context, path string, l load) (map[string]*latency.Measure, error) {
	var both []timing
	for _, backend := range []string{latency.Embedded, latency.ORT} {
		both = append(both, b.timing(ctx, backend, path, backend, l))
	}
	return b.interleaved(both)
}

// A timing measures something in a process of its own.
type timing struct {
	name string
	run  func() (*latency.Measure, error)
}

// timing is a timing of a backend.
func (b *bench) timing(ctx context.Context, name, path, backend string, l load) timing {
	return timing{name, func() (*latency.Measure, error) { return b.timed(ctx, path, backend, l, b.pace()...) }}
}

// interleaved measures all in turn, as often as requested: minimum of all runs, and the other figures of the process of median time.
func (b *bench) interleaved(timings []timing) (map[string]*latency.Measure, error) {
	all := map[string][]*latency.Measure{}
	for range b.runs {
		for _, t := range timings {
			m, err := t.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			all[t.name] = append(all[t.name], m)
		}
	}
	out := map[string]*latency.Measure{}
	for name, ms := range all {
		slices.SortFunc(ms, func(x, y *latency.Measure) int { return cmp.Compare(x.Median, y.Median) })
		m := *ms[len(ms)/2]
		for _, other := range ms {
			m.Min = min(m.Min, other.Min)
		}
		out[name] = &m
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
func (b *bench) timed(ctx context.Context, path, backend string, l load, more ...string) (*latency.Measure, error) {
	args := []string{"--json", "--workers", engineThreads, "bench", path, "--backend", backend, "--batch", strconv.Itoa(l.batch)}
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
	var ms []*latency.Measure
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
	found, err := filepath.Glob(filepath.Join(filepath.Dir(b.python), "..", "lib", "python*", "site-packages", "onnxruntime", "capi"))
	if err != nil || len(found) == 0 {
		return os.Getenv("MCOMPRESS_ORT_LIB"), err
	}
	return found[0], nil
}
