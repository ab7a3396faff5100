package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// A saving is a way to save memory, and how PyTorch saves.
type saving struct {
	name  string
	set   map[string]string
	torch []string // arguments of pytorch.py; nil if it has no such way
}

// savings of a model; the pattern names its blocks.
func savings(pattern string) []saving {
	return []saving{
		{"none", nil, []string{"float32"}},
		{"`--checkpoint auto`", map[string]string{"checkpoint": "auto"}, []string{"float32", "checkpoint"}},
		{"`--storage float16`", map[string]string{"storage": "float16"}, []string{"bfloat16"}},
		{"`--checkpoint auto --storage float16`", map[string]string{"checkpoint": "auto", "storage": "float16"},
			[]string{"bfloat16", "checkpoint"}},
		{"`--storage int8`", map[string]string{"storage": "int8"}, nil},
		{"`--checkpoint auto --storage int8`", map[string]string{"checkpoint": "auto", "storage": "int8"}, nil},
		{"`--checkpoint '" + pattern + "'`", map[string]string{"checkpoint": pattern}, nil},
	}
}

// savings compares memory, time and loss of the savings with PyTorch's.
func (b *bench) savings(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "### Memory savings\n\nProcesses of %s threads. The arena holds activations, gradients and scratch memory, as planned; process is its peak resident memory,\n"+
		"weights, samples and program included. Median time of a step, rounds: %d, interleaved; the loss is that of the last step of a round. PyTorch: activation\n"+
		"checkpointing of each block (`torch.utils.checkpoint`), autocast to bfloat16; growth is the peak resident memory minus that before the first step.\n"+
		"Its weights and samples are others, so that its losses are comparable with each other only.\n",
		engineThreads, b.runs)
	for _, c := range []struct {
		training
		pattern string
	}{{resnet, "BatchNormalization_*"}, {minilm, "encoder.layer.*"}} {
		text, err := b.savingsOf(ctx, c.training, savings(c.pattern))
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		t.WriteString("\n" + text)
	}
	return t.String(), nil
}

// A measured is the results of rounds.
type measured struct {
	wall         []float64
	arena        int64
	process      float64 // MiB
	growth, loss float64 // growth of PyTorch only
}

func (b *bench) savingsOf(ctx context.Context, tr training, all []saving) (string, error) {
	ours, theirs := make([]measured, len(all)), make([]measured, len(all))
	for range b.runs {
		for i, s := range all {
			if err := b.round(ctx, tr, s, &ours[i], &theirs[i]); err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "%s:\n\n", tr.name)
	t.WriteString("| options | arena, MiB | fraction | process, MiB | s per step | loss | PyTorch: growth, MiB | process, MiB | s per step | loss |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i, s := range all {
		o, p := ours[i], theirs[i]
		fmt.Fprintf(&t, "| %s | %.1f | %.2f | %.0f | %.2f | %.4f |", s.name, mib(o.arena),
			float64(o.arena)/float64(ours[0].arena), o.process, middle(o.wall), o.loss)
		if s.torch == nil {
			t.WriteString(" | | | |\n")
			continue
		}
		fmt.Fprintf(&t, " %.0f | %.0f | %.2f | %.4f |\n", p.growth, p.process, middle(p.wall), p.loss)
	}
	return t.String(), nil
}

// round measures a saving once on both sides.
func (b *bench) round(ctx context.Context, tr training, s saving, ours, theirs *measured) error {
	threads, err := strconv.Atoi(engineThreads)
	if err != nil {
		return err
	}
	t, err := b.trial(ctx, tr, threads, b.stepsOf(tr), s.set)
	if err != nil {
		return err
	}
	o, err := t.apart(ctx)
	if err != nil {
		return err
	}
	ours.wall, ours.arena, ours.process, ours.loss = append(ours.wall, o.Wall...), o.arena(),
		max(ours.process, o.Peak), o.Loss
	if s.torch == nil {
		return nil
	}
	peer, err := b.pytorch(ctx, tr, threads, s.torch...)
	if err != nil {
		return err
	}
	defer peer.close()
	p, err := peer.steps(b.stepsOf(tr))
	if err != nil {
		return err
	}
	theirs.wall = append(theirs.wall, p.wall...)
	text, err := peer.ask("memory")
	if err == nil {
		_, err = fmt.Sscan(text, &theirs.process, &theirs.growth, &theirs.loss)
	}
	return err
}

// planned compares plans with processes.
func (b *bench) planned(ctx context.Context) (string, error) {
	long := minilm
	long.name, long.net, long.data = "MiniLM, 512 tokens, batch 8, AdamW", "minilm512", []string{"8", "512"}
	many := b.many()
	many.name = fmt.Sprintf("ResNet18 shape, 224×224×3, batch %d, SGD with momentum", many.batch)
	var t strings.Builder
	t.WriteString("### Planned and real memory\n\nOne thread, two steps. Planned is the process: program, weights, optimizer states, the arena, batches and a reserve for garbage. During the training the\nGo runtime is limited to the plan, without a budget, too. The last columns are the peak resident memory without program, weights, teacher and samples, and its\nfraction of that without options.\n\n")
	t.WriteString("| training | options | arena, MiB | planned, MiB | process, MiB | difference, MiB | above weights and samples, MiB | fraction |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, tr := range []training{long, many} {
		var whole float64
		for _, s := range savings("")[:4] {
			tried, err := b.trial(ctx, tr, 1, 1, s.set)
			if err != nil {
				return "", err
			}
			o, err := tried.apart(ctx)
			if err != nil {
				return "", fmt.Errorf("%s: %w", tr.name, err)
			}
			if whole == 0 {
				whole = o.above()
			}
			fmt.Fprintf(&t, "| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.2f |\n", tr.name, s.name,
				mib(o.arena()), mib(o.need()), o.Peak, o.Peak-mib(o.need()), o.above(), o.above()/whole)
		}
	}
	return t.String(), nil
}

// smallest are the smallest arenas in relation to those without savings.
func (b *bench) smallest(ctx context.Context) (string, error) {
	many := b.many()
	many.name = fmt.Sprintf("ResNet18 shape, 224×224×3, batch %d", many.batch)
	var t strings.Builder
	t.WriteString("### Smallest plans\n\nPlanned arenas with SGD (MiniLM: AdamW), in MiB, and as a fraction of the one without savings.\n\n")
	t.WriteString("| training | none | `--checkpoint auto` | with float16 | with int8 | smallest fraction |\n|---|---:|---:|---:|---:|---:|\n")
	for _, tr := range []training{many, resnet, minilm, mobilenet} {
		tr.set = maps.Clone(tr.set)
		if tr.set["optimizer"] == "momentum" {
			tr.set["optimizer"] = "sgd"
		}
		var arenas []int64
		for _, o := range [][]string{nil, {"--checkpoint=auto"}, {"--checkpoint=auto", "--storage=float16"},
			{"--checkpoint=auto", "--storage=int8"}} {
			p, err := b.plan(ctx, tr, o...)
			if err != nil {
				return "", fmt.Errorf("%s: %w", tr.name, err)
			}
			arenas = append(arenas, p.Arena)
		}
		fmt.Fprintf(&t, "| %s | %.1f | %.1f | %.1f | %.1f | %.3f |\n", tr.name, mib(arenas[0]), mib(arenas[1]),
			mib(arenas[2]), mib(arenas[3]),
			float64(min(arenas[1], arenas[2], arenas[3]))/float64(arenas[0]))
	}
	return t.String(), nil
}
