package prune

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/ir"
)

// The distributions of the amount over layers: equal fractions, outlier weighed layerwise sparsity (Yin et al. 2023,
// arXiv:2310.05175), and smaller fractions of layers whose pruning changes the outputs of the model more.
const (
	uniform       = "uniform"
	owl           = "owl"
	bySensitivity = "sensitivity"
)

// The hyper-parameters of owl, those of the paper's section 4.1: an outlier is a score of so many times the mean of its
// weight, and the amounts differ from the mean by at most so much.
const (
	outlierFactor = 5
	amountSpread  = 0.08
)

// leastSensitive is the lowest output error that layers differ by, as a fraction of the highest.
const leastSensitive = 1e-3

// allocate distributes the amount over layers. Its mean, by the number of elements, remains the same.
func (s *samplePass) allocate(ctx context.Context, layers []*layer) (err error) {
	var scores []float64
	switch s.sparsity.Allocate {
	case "", uniform:
		return nil
	case owl:
		scores, err = s.outliers(ctx, layers)
	default:
		scores, err = s.sensitivities(ctx, layers)
	}
	if err == nil {
		distribute(layers, scores)
	}
	return err
}

// sensitivities are the logarithms of the output error per element, if one layer alone is pruned by the amount.
func (s *samplePass) sensitivities(ctx context.Context, layers []*layer) ([]float64, error) {
	defer func(given string) { *s.compare = given }(*s.compare)
	if isAuto(*s.compare) {
		// auto would try every comparison for each layer.
		*s.compare = s.paper
	}
	t := &trials{samplePass: s}
	noise, most := make([]float64, len(layers)), 0.0
	err := ir.Each(s.step.Env.Journal, make([]int64, len(layers)), func(i int, mine bool) error {
		one, err := t.prune(ctx, "sensitivity of "+layers[i].v.Name, mine, layers[i:i+1])
		if err != nil {
			return err
		}
		noise[i] = total(one) / float64(layers[i].before.Elems())
		most = max(most, noise[i])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, v := range noise {
		noise[i] = math.Log(max(v, leastSensitive*most, math.SmallestNonzeroFloat64))
	}
	return noise, nil
}

// outliers are the fractions of outliers among the scores |weight|·‖input‖ of the layers of the dense model.
func (s *samplePass) outliers(ctx context.Context, layers []*layer) ([]float64, error) {
	type input struct{ name, part string }
	inputOf := func(l *layer) input { return input{l.node.Input(0).Name, l.inputs()} }
	norms, first, names := map[input][]inputStatistics{}, map[string][]*layer{}, []string(nil)
	for _, l := range layers {
		in := inputOf(l)
		// Layers that read one input in the same arrangement share its norms.
		if norms[in] != nil {
			continue
		}
		if first[in.name] == nil {
			names = append(names, in.name)
		}
		first[in.name] = append(first[in.name], l)
		norms[in] = make([]inputStatistics, l.groups)
		for i := range norms[in] {
			norms[in][i] = &inputNorms{squares: make([]float64, l.k)}
		}
	}
	err := s.data.Each(ctx, s.step, s.step.Model, names, func(name string, a *ir.Array) error {
		for _, l := range first[name] {
			l.observe(a, norms[inputOf(l)])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	fractions := make([]float64, len(layers))
	for i, l := range layers {
		if fractions[i], err = s.outliersOf(ctx, l, norms[inputOf(l)]); err != nil {
			return nil, err
		}
	}
	return fractions, nil
}

// outliersOf is the fraction of outliers among the scores of a layer.
func (s *samplePass) outliersOf(ctx context.Context, l *layer, ms []inputStatistics) (float64, error) {
	b, err := s.step.Eval.ReadAll(ctx, l.before)
	if err != nil {
		return 0, err
	}
	x, ok := decodeFloats(b, l.before.DType)
	if !ok {
		return 0, nil
	}
	scores, sum, n := make([]float64, l.groups*l.n*l.k), 0.0, 0
	for row := range l.groups * l.n {
		l.scores(scores[row*l.k:][:l.k], x, row, ms[row/l.n].(*inputNorms))
	}
	for _, v := range scores {
		sum += max(v, 0)
	}
	for _, v := range scores {
		if v > outlierFactor*sum/float64(len(scores)) {
			n++
		}
	}
	return float64(n) / float64(len(scores)), nil
}

// distribute sets the amounts of layers: the larger the score, the smaller the amount.
func distribute(layers []*layer, scores []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, f := range scores {
		low, high = min(low, f), max(high, f)
	}
	if !(high > low) {
		return
	}
	mean, elems := 0.0, 0.0
	for i, l := range layers {
		n := float64(l.before.Elems())
		mean += n * (scores[i] - low) / (high - low)
		elems += n
	}
	mean /= elems
	for i, l := range layers {
		reach := min(amountSpread, l.amount/2, (1-l.amount)/2) // so that amounts stay fractions, with the same mean
		l.amount -= 2 * reach * ((scores[i]-low)/(high-low) - mean)
	}
}
