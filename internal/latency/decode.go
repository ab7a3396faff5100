package latency

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// defaultVocabulary bounds random token ids of models whose vocabulary is not known.
const defaultVocabulary = 100

// decode measures a prompt of random tokens and then tokens one by one, each with the keys and values of those before,
// until the minimum number of runs and the minimum time are reached. Times are of a whole run; the rates are medians.
func (m measurement) decode(ctx context.Context, j *Job, model *ir.Model, s engine.Session) error {
	var took, prompts, steps []time.Duration
	rng := rand.New(rand.NewPCG(j.Seed, 0))
	for i, start := -min(j.Warmup, 1), time.Now(); i < max(j.Runs, 1) || time.Since(start) < j.Time; i++ {
		if i == 0 {
			start = time.Now()
		}
		// Each run is a new conversation with empty caches.
		d, err := dataset.NewDecoder(model.Graph, j.Batch, j.Dims)
		if err != nil {
			return err
		}
		run := func(tokens int) (time.Duration, error) {
			in, err := d.Inputs(randomTokens(rng, d.Vocabulary(), j.Batch, tokens))
			if err != nil {
				return 0, err
			}
			begin := time.Now()
			out, err := s.Run(ctx, in, nil)
			if err == nil {
				spare := d.Keep(out, tokens)
				if e, ok := s.(*engine.Interpreter); ok {
					// The next outputs take the memory of caches that no run reads any more.
					e.Recycle(spare...)
				}
			}
			return time.Since(begin), err
		}
		prompt, err := run(j.Prompt)
		if err != nil {
			return err
		}
		total := time.Duration(0)
		for range j.Decode {
			one, err := run(1)
			if err != nil {
				return err
			}
			total += one
		}
		if i >= 0 {
			took, prompts, steps = append(took, prompt+total), append(prompts, prompt), append(steps, total)
		}
		m.Cache = d.CacheBytes()
	}
	for _, d := range [][]time.Duration{took, prompts, steps} {
		slices.Sort(d)
	}
	m.Runs = len(took)
	m.Min, m.Median, m.P90 = took[0].Seconds(), quantile(took, 0.5), quantile(took, 0.9)
	m.PerSec = float64(j.Batch) / m.Median
	m.Prompt = float64(j.Batch) * float64(j.Prompt) / quantile(prompts, 0.5)
	m.Decode = float64(j.Batch) * float64(j.Decode) / quantile(steps, 0.5)
	return nil
}

// randomTokens are ids of a vocabulary for each sequence.
func randomTokens(rng *rand.Rand, vocabulary, sequences int64, n int) [][]int64 {
	if vocabulary == 0 {
		vocabulary = defaultVocabulary
	}
	ids := make([][]int64, sequences)
	for i := range ids {
		for range n {
			ids[i] = append(ids[i], rng.Int64N(vocabulary))
		}
	}
	return ids
}
