package metric

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// A likelihood is the negative log-likelihood of a number of tokens.
type likelihood struct{ nats, tokens float64 }

// newPerplexity is exp(-1/n·Σ ln p(token | tokens before it in its sample)), over all tokens but the first one of each
// sample, with p the softmax of an output with a row of scores for each token of a run.
func newPerplexity(options) (Scorer, error) {
	return &set[likelihood]{
		read: func(b *Batch, side int) (func(*likelihood, int), error) {
			a, tokens := logits(b, b.sides()[side])
			if a == nil {
				return nil, inapplicable("no output has a row of scores for each token; name the output with --scores")
			}
			row := make([]float64, a.Shape[len(a.Shape)-1])
			return func(l *likelihood, i int) {
				for t, next := range b.Targets[i] {
					if next < 0 {
						continue
					}
					number.Read(row, a, (i*tokens+t)*len(row))
					l.nats -= logProbability(row, next)
					l.tokens++
				}
			}, nil
		},
		value: func(parts []*likelihood) float64 {
			all := likelihood{}
			for _, l := range parts {
				all.nats += l.nats
				all.tokens += l.tokens
			}
			return math.Exp(all.nats / all.tokens)
		},
	}, nil
}

// logits are the scores of the next token at each token of a run, and the number of these.
func logits(b *Batch, out outputs) (*ir.Array, int) {
	longest := 0
	for _, row := range b.Targets {
		longest = max(longest, len(row))
	}
	for _, name := range b.Outputs {
		a := out[name]
		if !floating(a) || len(a.Shape) < 2 || len(a.Shape) > 3 || a.Shape[len(a.Shape)-1] < 2 {
			continue
		}
		tokens := int(a.Elems()/a.Shape[len(a.Shape)-1]) / b.N
		if len(a.Shape) == 3 && a.Shape[0] != int64(b.N) || tokens < longest || tokens > longest+1 {
			continue // the last token of a sample has no target
		}
		return a, tokens
	}
	return nil, 0
}

// logProbability is the logarithm of the softmax of a row of scores at a class; -Inf for one without a score.
func logProbability(row []float64, class int64) float64 {
	if class >= int64(len(row)) {
		return math.Inf(-1)
	}
	top := math.Inf(-1)
	for _, x := range row {
		top = max(top, x)
	}
	sum := 0.0
	for _, x := range row {
		// Without the largest score subtracted the exponential of large scores overflows.
		sum += math.Exp(x - top)
	}
	return row[class] - top - math.Log(sum)
}
