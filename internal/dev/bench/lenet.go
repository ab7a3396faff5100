package main

import (
	"context"
	"fmt"
	"strings"
)

// lenetUnits are those of LeNet-300-100 (LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998).
var lenetUnits = []string{"784", "300", "100", "10"}

// rounds are fractions of pruned weights, one round of training after each (Han et al., Learning both Weights and
// Connections, 2015, arXiv:1506.02626).
var rounds = []string{"0.5", "0.75", "0.9"}

var (
	lenetFirst = []string{"--epochs", "12", "--batch", "128", "--lr", "1e-3", "--augment", "shift=1", "--reinit", "1"}
	lenetAgain = []string{"--epochs", "15", "--batch", "128", "--lr", "1e-3", "--augment", "shift=1"}
)

// lenet makes a trained net as small as it can be: pruned in rounds, trained for 8 bits, and stored by what is not
// zero.
func (b *bench) lenet(ctx context.Context) (string, error) {
	c := b.mnist(byte255)
	in, err := b.net(ctx, lenetUnits)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## LeNet-300-100, MNIST\n\n")
	fmt.Fprintf(&t, "Trained by `finetune %s`, then pruned by `l1-global` in rounds, each followed by\n`finetune %s --teacher DENSE`; the last with `--qat dynamic-int8`, which quantizes; finally `sparse`. Evaluated on %d images.\n\n",
		strings.Join(lenetFirst, " "), strings.Join(lenetAgain, " "), tested)
	t.WriteString("| step | file size, bytes | compression ratio | accuracy, % | drop, points |\n|---|---:|---:|---:|---:|\n")
	dense := b.trainFile("lenet.dense.onnx")
	if _, err := b.learn(ctx, c.train, append([]string{"finetune", in, "-o", dense}, lenetFirst...)...); err != nil {
		return "", err
	}
	whole, err := b.accuracy(ctx, dense, c.test)
	if err != nil {
		return "", err
	}
	row := func(name, path string) error {
		a, err := b.accuracy(ctx, path, c.test)
		fmt.Fprintf(&t, "| %s | %d | %.1f | %s | %s |\n", name, bytesOf(path),
			float64(bytesOf(dense))/float64(bytesOf(path)), percent(a), percent(whole-a))
		return err
	}
	if err := row("dense", dense); err != nil {
		return "", err
	}
	small, err := b.pruneInRounds(ctx, c, dense, row)
	if err != nil {
		return "", err
	}
	stored := b.trainFile("lenet.stored.onnx")
	if _, err := b.do(ctx, "sparse", small, "-o", stored); err != nil {
		return "", err
	}
	err = row("`sparse`, format auto", stored)
	return t.String(), err
}

// pruneInRounds prunes and trains in turn. It returns the last result.
func (b *bench) pruneInRounds(ctx context.Context, c split, dense string, row func(name, path string) error) (string,
	error) {
	last := dense
	for i, fraction := range rounds {
		pruned, trained := b.trainFile("lenet.pruned.onnx"), b.trainFile("lenet."+fraction+".onnx")
		if _, err := b.do(ctx, "prune", last, "-o", pruned, "--method", "l1-global", "--amount", fraction); err != nil {
			return "", err
		}
		args, name := append([]string{"finetune", pruned, "-o", trained, "--teacher", dense}, lenetAgain...),
			fraction+" of the weights pruned"
		if i == len(rounds)-1 {
			args, name = append(args, "--qat", "dynamic-int8"), name+", int8"
		}
		if _, err := b.learn(ctx, c.train, args...); err != nil {
			return "", err
		}
		if err := row(name, trained); err != nil {
			return "", err
		}
		last = trained
	}
	return last, nil
}
