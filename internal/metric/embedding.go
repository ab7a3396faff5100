package metric

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// embeddings are the vectors of the samples, scaled to length 1: rows of an output of two axes, or the mean over the
// tokens of one of three axes that the attention mask includes (Reimers and Gurevych, Sentence-BERT, EMNLP 2019).
// Outputs of more axes are flattened.
func embeddings(b *Batch, out outputs) ([][]float64, error) {
	for _, name := range b.Outputs {
		if a := out[name]; floating(a) {
			if vs := vectors(b, a); vs != nil {
				return vs, nil
			}
		}
	}
	return nil, inapplicable("no output has a vector of floats for each sample; name the output with --scores")
}

func vectors(b *Batch, a *ir.Array) [][]float64 {
	shape, ok := sample(a, b.N)
	if !ok || len(shape) == 0 || shape[len(shape)-1] < 2 {
		return nil
	}
	all := rows(a, b.N)
	var masks [][]float64
	if all := Masks(b.Inputs, b.N); all != nil {
		masks = all[0].Rows
	}
	for i := range all {
		if len(shape) == 2 && shape[0] > 0 {
			var mask []float64
			if masks != nil && int64(len(masks[i])) == shape[0] {
				mask = masks[i]
			}
			all[i] = meanPool(all[i], int(shape[1]), mask)
		}
		normalize(all[i])
	}
	return all
}

// meanPool is the mean of the tokens whose mask is not 0.
func meanPool(tokens []float64, width int, mask []float64) []float64 {
	sum, n := make([]float64, width), 0.0
	for t := range len(tokens) / width {
		if mask != nil && mask[t] == 0 {
			continue
		}
		for k, x := range tokens[t*width:][:width] {
			sum[k] += x
		}
		n++
	}
	for k := range sum {
		// A sample of padding alone has a zero vector instead of NaNs.
		sum[k] /= max(1, n)
	}
	return sum
}

// normalize scales v to length 1; a zero vector remains.
func normalize(v []float64) {
	norm := math.Sqrt(dot(v, v))
	if norm == 0 {
		return
	}
	for i := range v {
		v[i] /= norm
	}
}

// dot is the product of two vectors.
func dot(v, w []float64) float64 {
	sum := 0.0
	for i := range v {
		sum += float64(v[i] * w[i])
	}
	return sum
}

// newEmbeddingCosine is the mean of the cosine similarities of the samples' embeddings to those of the reference.
func newEmbeddingCosine(options) (Scorer, error) {
	return &mean{ratios: func(b *Batch, out outputs) ([]ratio, error) {
		want, err := embeddings(b, b.Want)
		if err != nil {
			return nil, err
		}
		got, err := embeddings(b, out)
		if err != nil {
			return nil, err
		}
		all := make([]ratio, b.N)
		for i := range all {
			if len(got[i]) != len(want[i]) {
				return nil, inapplicable("embeddings have %d numbers, those of the reference %d", len(got[i]), len(want[i]))
			}
			all[i] = ratio{dot(want[i], got[i]), 1}
		}
		return all, nil
	}}, nil
}
