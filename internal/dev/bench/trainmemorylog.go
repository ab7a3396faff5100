package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/engine/grad"
)

// logRows are layers of ResNet18 with the differences, in MiB at batch size 128, that a logger of memory in PyTorch
// reported on a GPU.
var logRows = []struct {
	kind      string
	n         int // of the layers of this kind, from 0
	phase     grad.Phase
	published string
}{
	{"Conv", 0, grad.Forward, "392"}, {"BatchNormalization", 0, grad.Forward, "392"}, {"Relu", 0, grad.Forward, "0"},
	{"MaxPool", 0, grad.Forward, ""},
	{"Conv", 1, grad.Forward, "98"}, {"BatchNormalization", 1, grad.Forward, "98"}, {"Relu", 1, grad.Forward, "0"},
	{"Conv", 5, grad.Forward, "49"}, {"BatchNormalization", 5, grad.Forward, "49"},
	{"Gemm", 0, grad.Backward, "2"}, {"BatchNormalization", 1, grad.Backward, "-98"}, {"Conv", 1, grad.Backward, "-98"},
	{"MaxPool", 0, grad.Backward, "98"}, {"Relu", 0, grad.Backward, ""},
	{"BatchNormalization", 0, grad.Backward, "-392"}, {"Conv", 0, grad.Backward, "-784"},
}

// A layerPass is a pass of the n-th layer of a kind.
type layerPass struct {
	kind  string
	n     int
	phase grad.Phase
}

// A memoryLog is the difference of the live bytes that each pass of each layer makes, and their maximum.
type memoryLog struct {
	changes map[layerPass]int64
	peak    int64
}

// layerLog compares live bytes by layer with PyTorch's.
func (b *bench) layerLog(ctx context.Context) (string, error) {
	tr := b.many()
	logs := make([]memoryLog, 3)
	var err error
	if logs[0], err = b.torchLog(ctx, tr.batch); err != nil {
		return "", err
	}
	for i, plain := range []string{"--plain", "--plain=false"} {
		if logs[1+i], err = b.planLog(ctx, tr, plain); err != nil {
			return "", err
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "## Memory of a training step\n\n### Live bytes by layer\n\nResNet18 shape, 224×224×3, batch %d, float32: the difference that a pass of a layer makes, in MiB, of gradients of weights included. Published: a\n"+
		"logger of PyTorch's memory on a GPU, batch 128, in-place ReLU. PyTorch: allocated bytes of the C heap on this CPU, in-place ReLU; the pass of a layer includes\n"+
		"what follows it up to the next one, such as a sum. `--plain` has the operators of the model, as PyTorch; what `finetune` runs fuses the normalization\n"+
		"with the pool after it, stores the places of maxima as bytes, and updates each weight at once.\n\n", tr.batch)
	t.WriteString("| layer | pass | published | PyTorch | `memory --training --plain` | `memory --training` |\n|---|---|---:|---:|---:|---:|\n")
	for _, r := range logRows {
		fmt.Fprintf(&t, "| %s %d | %s | %s |", r.kind, r.n+1, r.phase, r.published)
		for _, l := range logs {
			fmt.Fprintf(&t, " %.1f |", mib(l.changes[layerPass{r.kind, r.n, r.phase}]))
		}
		t.WriteString("\n")
	}
	fmt.Fprintf(&t, "| maximum | | 2500 |")
	for _, l := range logs {
		fmt.Fprintf(&t, " %.0f |", mib(l.peak))
	}
	return t.String() + "\n", nil
}

// planLog is the log of the memory plan.
func (b *bench) planLog(ctx context.Context, tr training, plain string) (memoryLog, error) {
	p, err := b.plan(ctx, tr, plain)
	if err != nil {
		return memoryLog{}, err
	}
	l := newLog()
	numbers, last := map[string]int{}, map[string]int{}
	var at layerPass
	before := int64(0)
	for _, s := range p.Steps {
		kind, _, _ := strings.Cut(s.Layer, "_")
		if s.Layer != "" && s.Phase == grad.Forward {
			if _, known := numbers[s.Layer]; !known {
				numbers[s.Layer] = last[kind]
				last[kind]++
			}
		}
		if s.Layer != "" { // updates belong to the layer before them
			at = layerPass{kind, numbers[s.Layer], s.Phase}
		}
		l.changes[at] += s.After - before
		l.peak, before = max(l.peak, s.Bytes), s.After
	}
	return l, nil
}

func newLog() memoryLog { return memoryLog{changes: map[layerPass]int64{}} }

// plan is the memory plan of tr.
func (b *bench) plan(ctx context.Context, tr training, more ...string) (*distill.Plan, error) {
	in, data, err := b.materials(ctx, tr)
	if err != nil {
		return nil, err
	}
	args := []string{"memory", "--training", "--json", "--data", data, "--validate", "0",
		"--batch", strconv.Itoa(tr.batch)}
	for name, value := range tr.set {
		if name != "lr" {
			args = append(args, "--"+name+"="+value)
		}
	}
	if tr.tokens {
		args = append(args, "--teacher", b.wholeMiniLM())
	}
	text, err := b.stdout(ctx, b.tool, append(append(args, more...), in)...)
	if err != nil {
		return nil, err
	}
	var m struct{ Plans []distill.Plan }
	if err := json.Unmarshal([]byte(text), &m); err != nil || len(m.Plans) != 1 {
		return nil, fmt.Errorf("memory --training: %d plans, want 1 (%w)", len(m.Plans), err)
	}
	return &m.Plans[0], nil
}

// torchLog is the log of PyTorch: events are after the forward pass of a layer, and before its backward pass.
func (b *bench) torchLog(ctx context.Context, batch int) (memoryLog, error) {
	l := newLog()
	text, err := b.stdout(ctx, b.torch, "-c", torchScript, "log", strconv.Itoa(batch))
	if err != nil {
		return l, err
	}
	kinds := map[string]string{"Conv2d": "Conv", "BatchNorm2d": "BatchNormalization", "ReLU": "Relu",
		"MaxPool2d": "MaxPool", "Linear": "Gemm"}
	count := map[layerPass]int{}
	var at layerPass
	var start, before int64
	for i, line := range strings.Fields(text) {
		f := strings.Split(line, ",")
		bytes, err := strconv.ParseInt(f[len(f)-1], 10, 64)
		if err != nil || len(f) != 3 {
			return l, fmt.Errorf("log of PyTorch: %q", line)
		}
		switch phase := grad.Phase(f[1]); {
		case i == 0:
			start = bytes
		case phase == grad.Forward:
			key := layerPass{kinds[f[0]], 0, grad.Forward}
			l.changes[layerPass{key.kind, count[key], phase}] += bytes - before
			count[key]++
		default: // the difference is that of the event before
			if at.kind != "" {
				l.changes[at] += bytes - before
			}
			key := layerPass{kinds[f[0]], 0, grad.Forward}
			count[key]--
			at = layerPass{key.kind, count[key], grad.Backward}
		}
		l.peak, before = max(l.peak, bytes-start), bytes
	}
	return l, nil
}
