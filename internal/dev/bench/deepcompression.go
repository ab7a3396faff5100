package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// deepRecipe is the recipe of the section deep-compression. Fine-tuning follows pruning.
const (
	deepRecipe = "fixtures/recipes/deep-compression.yaml"
	deepTuning = "  - method: finetune\n"
)

// deepDense trains the dense networks, on the images that the recipe trains on.
var deepDense = []string{"--batch", "128", "--lr", "1e-3", "--limit", "55000"}

// A deepNet is a network of Deep Compression (Han, Mao, Dally 2016, arXiv:1510.00149), with the figures of the paper.
type deepNet struct {
	name, verb string
	units      []string
	epochs     string // of the dense network
	seeds      []string
	recipe     *strings.Replacer // changes the recipe
	ratio      int               // compression ratio of the paper
	accuracies string            // accuracies of the paper
}

var deepNets = []deepNet{
	{"LeNet-300-100", "mlp", lenetUnits, "12", pruningSeeds, strings.NewReplacer(), 40, "98.36 → 98.42"},
	{"LeNet-5", "lenet5", nil, "8", []string{"1"}, shorter, 39, "99.20 → 99.26"},
}

// shorter has fewer epochs, as an epoch of LeNet-5 takes ten times as long, and no codebook of its own size for the
// output layer.
var shorter = strings.NewReplacer("steps: 10\n    epochs: 2", "steps: 5\n    epochs: 1", "epochs: 15", "epochs: 3",
	"  - method: palette\n    block: 0\n    entries: 64\n    only: fc2.weight\n", "", "    skip: fc2.weight\n", "")

// deepCompression applies the recipe of Deep Compression to networks that it trains.
func (b *bench) deepCompression(ctx context.Context) (string, error) {
	if err := b.linkMNIST(); err != nil {
		return "", err
	}
	text, err := os.ReadFile(deepRecipe)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "## Deep Compression\n\nNetworks trained by `finetune %s --epochs EPOCHS --seed SEED --reinit SEED`, 12 epochs for LeNet-300-100 and 8 for LeNet-5 (as in Caffe), and compressed by\n"+
		"`apply %s -o lenet.mcz`; for LeNet-5 with 5 steps of one epoch, 3 epochs of fine-tuning, and 16 entries for all weights. Both are trained on the first 55,000 training images of MNIST; the other 5,000 chose the recipe.\n"+
		"The recipe shifts images by up to one pixel (`augment: shift=1`), the training of the dense networks does not: without it, and with 16 entries for the output layer, the drops on those 5,000 images\nwere -0.16, 0.00 and 0.34 points with seeds 1, 2 and 3 (-0.22, 0.10 and 0.14 with both). File sizes in bytes; accuracy in %% on %d test images, which chose nothing;\n0.02 points are one image. The paper is Han et al. 2016, its accuracies are of all 10,000 test images.\n\n", strings.Join(deepDense, " "), deepRecipe, tested)
	t.WriteString("| network | seed | dense | compressed | ratio | of the paper | accuracy: dense → compressed | drop, points | accuracy of the paper |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, n := range deepNets {
		if err := b.deepRows(ctx, n, n.recipe.Replace(string(text)), &t); err != nil {
			return "", fmt.Errorf("%s: %w", n.name, err)
		}
	}
	stages, err := b.deepStages(ctx, deepNets[0], string(text))
	return t.String() + stages, err
}

// linkMNIST makes the folder mnist that recipes read.
func (b *bench) linkMNIST() error {
	images, err := filepath.Abs(filepath.Join(b.shared, "fixtures", "datasets", "mnist"))
	if err != nil {
		return err
	}
	if err := os.Symlink(images, b.trainFile("mnist")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// deepFile is the path of a file of a network.
func (b *bench) deepFile(n deepNet, seed, suffix string) string {
	return b.trainFile("deep." + n.verb + "." + seed + suffix)
}

// deepRows are the rows of one network.
func (b *bench) deepRows(ctx context.Context, n deepNet, recipe string, t *strings.Builder) error {
	in, err := b.made(ctx, "train/deep."+n.verb+".onnx", n.verb, n.units...)
	if err != nil {
		return err
	}
	for _, seed := range n.seeds {
		dense, packed := b.deepFile(n, seed, ".onnx"), b.deepFile(n, seed, ".mcz")
		args := append([]string{"finetune", in, "--epochs", n.epochs, "--seed", seed, "--reinit", seed}, deepDense...)
		if _, err := b.learnedOnce(ctx, b.mnist(byte255).train, dense, args...); err != nil {
			return err
		}
		if err := b.applied(ctx, recipe, dense, packed); err != nil {
			return err
		}
		before, err := b.accuracy(ctx, dense, b.mnist(byte255).test)
		if err != nil {
			return err
		}
		after, err := b.accuracy(ctx, packed, b.mnist(byte255).test)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "| %s | %s | %d | %d | %.1f× | %d× | %s → %s | %s | %s |\n", n.name, seed, bytesOf(dense),
			bytesOf(packed), ratioOf(dense, packed), n.ratio, percent(before), percent(after), percent(before-after),
			n.accuracies)
	}
	return nil
}

func ratioOf(dense, result string) float64 { return float64(bytesOf(dense)) / float64(bytesOf(result)) }

// deepStages is the table of file sizes after each stage for the first seed of a network.
func (b *bench) deepStages(ctx context.Context, n deepNet, recipe string) (string, error) {
	pruning, _, found := strings.Cut(recipe, deepTuning)
	if !found {
		return "", fmt.Errorf("%s has no step finetune", deepRecipe)
	}
	seed := n.seeds[0]
	dense, packed, pruned := b.deepFile(n, seed, ".onnx"), b.deepFile(n, seed, ".mcz"),
		b.deepFile(n, seed, ".pruned.onnx")
	if err := b.applied(ctx, pruning, dense, pruned); err != nil {
		return "", err
	}
	prunedSparse, sharedSparse := b.deepFile(n, seed, ".pruned.sparse.onnx"), b.deepFile(n, seed, ".shared.sparse.onnx")
	for in, out := range map[string]string{pruned: prunedSparse, packed: sharedSparse} {
		if _, err := b.do(ctx, "sparse", in, "-o", out); err != nil {
			return "", err
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "\nFile sizes of %s by stage, seed %s. `sparse` stores the first two in the smallest sparse form; the packed file has dense indices.\n\n| stage | bytes | ratio | of the paper |\n|---|---:|---:|---:|\n", n.name, seed)
	for _, s := range []struct{ name, path, paper string }{
		{"pruned", prunedSparse, "12×"},
		{"pruned, weight sharing", sharedSparse, "32×"},
		{"packed", packed, "40×"},
	} {
		fmt.Fprintf(&t, "| %s | %d | %.1f× | %s |\n", s.name, bytesOf(s.path), ratioOf(dense, s.path), s.paper)
	}
	return t.String(), nil
}

// applied applies a recipe in the folder for training to a model there or of an absolute path, unless an earlier run
// did.
func (b *bench) applied(ctx context.Context, recipe, in, out string) error {
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	if b.quick {
		recipe = quickly(recipe)
	}
	file := out + ".yaml"
	if err := os.WriteFile(file, []byte(recipe), 0o644); err != nil {
		return err
	}
	if !filepath.IsAbs(in) {
		in = filepath.Base(in)
	}
	_, err := b.doIn(ctx, b.trainFile(""), "apply", filepath.Base(file), in, "-o", filepath.Base(out))
	return err
}

// quickly is a recipe with steps of training instead of epochs.
func quickly(recipe string) string {
	var t strings.Builder
	steps := "steps:"
	for line := range strings.Lines(recipe) {
		if method, found := strings.CutPrefix(line, "  - method: "); found {
			steps = "steps:"
			if strings.TrimSpace(method) == "iterative" {
				steps = "training-steps:"
			}
		}
		t.WriteString(strings.Replace(line, "epochs:", steps, 1))
	}
	return t.String()
}
