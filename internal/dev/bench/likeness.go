package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
)

// A sentenceModel is MiniLM, and texts: parts of it are pruned, and it is distilled from itself before. Results that
// exist are not measured again.
type sentenceModel struct {
	*bench
	*results
	dense string
	data  split
}

// likenessText is how a pruned MiniLM is trained and evaluated.
const likenessText = "Mean cosine similarity of the embeddings of 400 test texts to those of the dense model, and spam by the nearest\n" +
	"centroid among them, in %. Samples are the other 400 texts. Distillation: `finetune --teacher DENSE --loss mse --epochs 1\n--batch 16 --lr 3e-4`, mean of 3 seeds (minimum to maximum).\n\n"

// miniLM opens the results of a section.
func (b *bench) miniLM(ctx context.Context, section string) (*sentenceModel, error) {
	splits, err := b.sms(ctx)
	if err != nil {
		return nil, err
	}
	r, err := openResults(b.trainFile("minilm." + section + ".txt"))
	return &sentenceModel{b, r, filepath.Join(b.shared, "fixtures", "models", "transformer", "minilm_l6_v2_vocab3086",
		"model.onnx"), splits[0]}, err
}

// A likeness is how much of a model a smaller one keeps.
type likeness struct{ accuracy, cosine float64 }

// likenesses are those of one model by seed.
type likenesses []likeness

func (l likenesses) cosines() string {
	return spread(l, func(x likeness) float64 { return x.cosine }, "%.3f")
}

func (l likenesses) accuracies() string {
	return spread(l, func(x likeness) float64 { return 100 * x.accuracy }, "%.2f")
}

// spread is the mean, minimum and maximum of a quantity.
func spread(l likenesses, of func(likeness) float64, format string) string {
	xs, sum := make([]float64, len(l)), 0.0
	for i, x := range l {
		xs[i] = of(x)
		sum += xs[i]
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", sum/float64(len(xs)), slices.Min(xs), slices.Max(xs))
}

// distilled are the likenesses of what prune makes, and after distillation with each seed.
func (m *sentenceModel) distilled(ctx context.Context, name string, prune func(out string) error) (before likeness,
	after likenesses, err error) {
	pruned, trained := m.trainFile("minilm.pruned.onnx"), m.trainFile("minilm.trained.onnx")
	made := false
	measure := func(name, path string, train func() error) (l likeness, err error) {
		if _, ok := m.known(name + ", cosine"); !ok {
			if !made {
				if err := prune(pruned); err != nil {
					return l, err
				}
				made = true
			}
			if err := train(); err != nil {
				return l, err
			}
			text, err := m.helper(ctx, "likeness", m.data.test[0], m.dense, path)
			if err != nil {
				return l, err
			}
			if _, err := fmt.Sscan(text, &l.accuracy, &l.cosine); err != nil {
				return l, err
			}
			if err := m.add(name+", accuracy", l.accuracy); err != nil {
				return l, err
			}
			return l, m.add(name+", cosine", l.cosine)
		}
		l.accuracy, _ = m.known(name + ", accuracy")
		l.cosine, _ = m.known(name + ", cosine")
		return l, nil
	}
	if before, err = measure(name, pruned, func() error { return nil }); err != nil {
		return before, nil, err
	}
	for _, seed := range seeds[:m.some(len(seeds))] {
		l, err := measure(fmt.Sprintf("%s, seed %d", name, seed), trained, func() error {
			_, err := m.learn(ctx, m.data.train, "finetune", pruned, "-o", trained, "--teacher", m.dense,
				"--loss", "mse", "--epochs", "1", "--batch", "16", "--lr", "3e-4", "--validate", "0",
				"--seed", strconv.Itoa(seed))
			return err
		})
		if err != nil {
			return before, nil, err
		}
		after = append(after, l)
	}
	return before, after, nil
}
