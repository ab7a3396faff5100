package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A pupil is a real model that is fine-tuned after pruning.
type pupil struct {
	name     string // folder of the shared models
	split    func(b *bench, ctx context.Context) ([]split, error)
	set      []string // of finetune
	evaluate func(b *bench, ctx context.Context, model string, c split) (float64, error)
}

// pupils are the shared classifiers that come with data.
var pupils = []pupil{
	{"vision/mnist_cntk", whole255("1"), slices.Concat(labelled, fewer), (*bench).byLabels},
	{"vision/mnist_cnn_max3", whole255(byte255), labelled, (*bench).byLabels},
	{"transformer/mnist_self_attention", whole255(byte255), slices.Concat(labelled, fewer), (*bench).byLabels},
	{"vision/mnist_sigmoid", whole255(byte255), labelled, (*bench).byLabels},
	{"vision/mnist_softmax_head", whole255(byte255), labelled, (*bench).byLabels},
	{"vision/cifar_wide_kw", (*bench).cifar, mute, (*bench).byLabels},
	{"vision/cifar_deep_kw", (*bench).cifar, mute, (*bench).byLabels},
	{"transformer/minilm_l6_v2_vocab3086", (*bench).sms, texts, (*bench).byCentroids},
}

var (
	labelled = []string{"--epochs", "10", "--batch", "64", "--lr", "8e-3", "--alpha", "0.9", "--validate", "0.05"}
	fewer    = []string{"--epochs", "5"} // one sample at a time
	mute     = []string{"--loss", "mse", "--features", "hidden", "--augment", "shift=4,flip", "--epochs", "400",
		"--batch", "20", "--lr", "2e-3", "--validate", "0"}
	texts = []string{"--loss", "mse", "--epochs", "6", "--batch", "16", "--lr", "3e-4", "--validate", "0"}
)

// shrinkings are what is taken from the pupils.
var shrinkings = []struct {
	name string
	set  []string
}{
	{"80 % of the weights (`l1-global`)", []string{"--method", "l1-global", "--amount", "0.8"}},
	{"50 % of the channels (`channel`)", []string{"--method", "channel", "--amount", "0.5"}},
}

// finetune prunes real models and lets them learn from what they were.
func (b *bench) finetune(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Real models, pruned and fine-tuned\n\n")
	fmt.Fprintf(&t, "Each is trained by `finetune --teacher DENSE`. mnist_*: on the 60,000 images with labels, evaluated on %d others. cifar_*: there are 200\nimages, of the test set; ", tested)
	t.WriteString("each half evaluates a model that was trained, without labels and augmented, on the other 100, so that one image is\n0.5 points and a gain may be chance. ")
	t.WriteString("minilm: its vectors, from the 400 train texts without labels; spam by the nearest\ncentroid among the 400 others, where one text is 0.25 points. The compression ratio is that after `sparse`; accuracy in %, and its drop\nin points.\n\n")
	t.WriteString("| model | pruned weights | compression ratio | dense | pruned | fine-tuned | drop |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, p := range pupils {
		for i, s := range shrinkings {
			row, err := b.pupilRow(ctx, p, i)
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", p.name, s.name, err)
			}
			t.WriteString(row)
		}
	}
	return t.String(), nil
}

// pupilRow prunes and trains one model, once for each split, and returns the mean.
func (b *bench) pupilRow(ctx context.Context, p pupil, shrinking int) (string, error) {
	splits, err := p.split(b, ctx)
	if err != nil {
		return "", err
	}
	var dense, pruned, trained float64
	model := filepath.Join(b.shared, "fixtures", "models", p.name, "model.onnx")
	small, again := b.trainFile("pupil.pruned.onnx"), b.trainFile("pupil.trained.onnx")
	for _, c := range splits {
		if _, err := b.do(ctx, slices.Concat([]string{"prune", model, "-o", small},
			shrinkings[shrinking].set)...); err != nil {
			return "", err
		}
		if _, err := b.learn(ctx, c.train, slices.Concat([]string{"finetune", small, "-o", again, "--teacher", model},
			p.set)...); err != nil {
			return "", err
		}
		for _, m := range []struct {
			path string
			sum  *float64
		}{{model, &dense}, {small, &pruned}, {again, &trained}} {
			fraction, err := p.evaluate(b, ctx, m.path, c)
			if err != nil {
				return "", err
			}
			*m.sum += fraction / float64(len(splits))
		}
	}
	stored := b.trainFile("pupil.stored.onnx")
	if _, err := b.do(ctx, "sparse", again, "-o", stored); err != nil {
		return "", err
	}
	return fmt.Sprintf("| %s | %s | %.2f | %s | %s | %s | %s |\n", filepath.Base(p.name), shrinkings[shrinking].name,
		float64(bytesOf(model))/float64(bytesOf(stored)),
		percent(dense), percent(pruned), percent(trained), percent(dense-trained)), nil
}

// whole255 is MNIST, its pixels times scale.
func whole255(scale string) func(*bench, context.Context) ([]split, error) {
	return func(b *bench, _ context.Context) ([]split, error) { return []split{b.mnist(scale)}, nil }
}

// cifar are two splits: each trains on every other image, and evaluates on the rest.
func (b *bench) cifar(ctx context.Context) ([]split, error) {
	src := filepath.Join(b.shared, "fixtures", "datasets", "cifar10", "sdp200.bin")
	even, odd := b.trainFile("even.bin"), b.trainFile("odd.bin")
	if _, err := b.helper(ctx, "halves", src, even, odd); err != nil {
		return nil, err
	}
	flags := func(path string) []string {
		return []string{"--data", path, "--scale", byte255, "--mean", "0.485,0.456,0.406", "--std", "0.225"}
	}
	return []split{{flags(even), flags(odd)}, {flags(odd), flags(even)}}, nil
}

// sms is the split of the texts' token ids. Evaluation reads the shared file.
func (b *bench) sms(ctx context.Context) ([]split, error) {
	src := filepath.Join(b.shared, "fixtures", "datasets", "sms_spam", "sms800_tokens.npz")
	train := b.trainFile("sms.npz")
	_, err := b.helper(ctx, "texts", src, train)
	return []split{{[]string{"--data", train}, []string{src}}}, err
}

// byLabels is the top-1 accuracy.
func (b *bench) byLabels(ctx context.Context, model string, c split) (float64, error) {
	return b.accuracy(ctx, model, c.test)
}

// byCentroids is the fraction of texts that are nearest to the centroid of their class.
func (b *bench) byCentroids(ctx context.Context, model string, c split) (fraction float64, err error) {
	text, err := b.helper(ctx, "spam", c.test[0], model)
	if err == nil {
		_, err = fmt.Sscan(text, &fraction)
	}
	return fraction, err
}
