package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed channel.py
var channelScript string

// A channelNet is a network whose channels are pruned.
type channelNet struct {
	name, verb string
	units      []string
	seeds      []string
}

// channelNets have fewer seeds where training takes longer.
var channelNets = []channelNet{
	{"LeNet-300-100", "mlp", lenetUnits, pruningSeeds},
	{"LeNet-5", "lenet5", nil, pruningSeeds[:1]},
}

// The fraction of the multiply-accumulates that is kept, the number of calibration samples, and the trainings.
const (
	channelMacs    = "0.5"
	channelSamples = "512"
)

var (
	channelDense = []string{"--epochs", "3", "--batch", "128", "--lr", "1e-3", "--validate", "0"}
	channelTuned = []string{"--epochs", "1", "--batch", "128", "--lr", "1e-3", "--validate", "0"}
)

// pruneChannel compares channel pruning with Torch-Pruning. Trainings that ended are not repeated.
func (b *bench) pruneChannel(ctx context.Context) (string, error) {
	if _, err := b.channel(ctx, "samples", b.trainFile("channel.npz"), b.shared, channelSamples); err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "## Channels, compared with Torch-Pruning\n\nNetworks trained on MNIST by `finetune %s` (LeNet-5 as in Caffe) lose channels until at most %s of the multiply-accumulates (MACs) are left: by\n"+
		"`prune --method channel --importance taylor --target-macs %s`, and by Torch-Pruning %s (`BasePruner` with `GroupTaylorImportance`, `global_pruning`, in steps of 0.5 %% of the channels), with\n"+
		"the same %s training images. Torch-Pruning has their labels too, and measures gradients again in each step, as its documentation does. Both results are then fine-tuned by\n"+
		"`finetune %s`. Accuracy in %% on %d test images.\n\n", strings.Join(channelDense, " "), channelMacs,
		channelMacs, pinned("torch-pruning"), channelSamples, strings.Join(channelTuned, " "), tested)
	t.WriteString("| network | seed | pruned by | parameters | MACs | of the dense, % | accuracy | fine-tuned |\n|---|---:|---|---:|---:|---:|---:|---:|\n")
	for _, n := range channelNets {
		for _, seed := range n.seeds[:b.some(len(n.seeds))] {
			if err := b.channelRows(ctx, &t, n, seed); err != nil {
				return "", fmt.Errorf("%s: %w", n.name, err)
			}
		}
	}
	return t.String(), nil
}

// channel runs a verb of channel.py.
func (b *bench) channel(ctx context.Context, args ...string) (string, error) {
	return b.part(ctx, "channel.py", channelScript, args)
}

// channelRows writes the rows of one network and seed.
func (b *bench) channelRows(ctx context.Context, t *strings.Builder, n channelNet, seed string) error {
	path := func(name string) string { return b.trainFile("channel." + n.verb + "." + seed + "." + name + ".onnx") }
	in, err := b.made(ctx, "train/channel."+n.verb+".onnx", n.verb, n.units...)
	if err != nil {
		return err
	}
	c, dense := b.mnist(byte255), path("dense")
	if _, err := b.learnedOnce(ctx, c.train, dense,
		slices.Concat([]string{"finetune", in, "--reinit", seed, "--seed", seed}, channelDense)...); err != nil {
		return err
	}
	whole := 0.0
	row := func(name, file, tuned string) error {
		var parameters, macs int
		text, err := b.channel(ctx, "count", file)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(text, &parameters, &macs); err != nil {
			return err
		}
		whole = max(whole, float64(macs))
		cells := [2]string{}
		for i, f := range []string{file, tuned} {
			if f == "" {
				continue
			}
			a, err := b.accuracy(ctx, f, c.test)
			if err != nil {
				return err
			}
			cells[i] = percent(a)
		}
		fmt.Fprintf(t, "| %s | %s | %s | %d | %d | %.1f | %s | %s |\n", n.name, seed, name, parameters, macs,
			100*float64(macs)/whole, cells[0], cells[1])
		return nil
	}
	if err := row("", dense, ""); err != nil {
		return err
	}
	for _, p := range []struct {
		name, file string
		prune      func(out string) error
	}{
		{"mcompress", "ours", func(out string) error {
			_, err := b.do(ctx, "prune", dense, "-o", out, "--method", "channel", "--importance", "taylor",
				"--target-macs", channelMacs, "--data", b.trainFile("channel.npz"), "--calibrate", channelSamples)
			return err
		}},
		{"Torch-Pruning", "theirs", func(out string) error {
			_, err := b.channel(ctx, "prune", dense, out, b.trainFile("channel.npz"), channelMacs)
			return err
		}},
	} {
		pruned, tuned := path(p.file), path(p.file+".tuned")
		if err := p.prune(pruned); err != nil {
			return err
		}
		if _, err := b.learnedOnce(ctx, c.train, tuned,
			slices.Concat([]string{"finetune", pruned, "--seed", seed}, channelTuned)...); err != nil {
			return err
		}
		if err := row(p.name, pruned, tuned); err != nil {
			return err
		}
	}
	return nil
}
