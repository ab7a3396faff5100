package metric

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// maxScoreRank is the maximum rank of scores of samples: samples by classes, or samples by tokens by classes. Tensors
// of more axes are images or feature maps, unless labels have more axes, too.
const maxScoreRank = 3

// noClass is the top-1 class of a row of NaNs.
const noClass = -1

// Top1 is the index of the largest element of each row along the last axis, the first of several; -1 for a row of NaNs.
// It is nil for rows of one element and for tensors of more than three axes, which are no scores.
func Top1(a *ir.Array) []int64 {
	if len(a.Shape) == 0 || len(a.Shape) > maxScoreRank || a.Shape[len(a.Shape)-1] < 2 {
		return nil
	}
	var out []int64
	for row := range slices.Chunk(values(a), int(a.Shape[len(a.Shape)-1])) {
		out = append(out, largest(len(row), func(c int) float64 { return row[c] }))
	}
	return out
}

// largest is the class with the largest score, the first of several; none for NaNs.
func largest(classes int, score func(c int) float64) int64 {
	at := noClass
	for c := range classes {
		if x := score(c); x == x && (at == noClass || x > score(at)) {
			at = c
		}
	}
	return int64(at)
}

// prediction are the predictions for labels: classes, or scores of classes, or one score for each label.
type prediction struct {
	data    []float64
	labels  int // of a sample
	classes int // 0 for classes, 1 for one score, else the number of scores of a label
	stride  int // between the scores of a label
	output  string
}

// predictions are those of the first suitable output for labels of the given shape of a sample. oneScore admits one
// score for each label.
func predictions(b *Batch, out outputs, oneScore bool) (*prediction, error) {
	shape, ok := sample(b.Labels, b.N)
	if !ok {
		return nil, inapplicable("labels are %s, but the run has %d samples", b.Labels, b.N)
	}
	for _, name := range b.Outputs {
		if p := predictionsOf(out[name], shape, b.N, oneScore); p != nil {
			p.output = name
			return p, nil
		}
	}
	return nil, inapplicable("no output has classes or scores for labels of shape %v of a sample; name the output "+
		"with --scores", shape)
}

func predictionsOf(a *ir.Array, labels []int64, n int, oneScore bool) *prediction {
	if !readable(a) || a.Elems() == 0 {
		return nil
	}
	count := int(ir.Spec{DType: ir.Uint8, Shape: labels}.Elems())
	p := &prediction{labels: count, stride: 1}
	switch all := n * count; {
	case count == 0:
		return nil
	case int(a.Elems()) == all && (!a.DType.IsFloat() || oneScore):
		if a.DType.IsFloat() {
			p.classes = 1
		}
	// Integers are classes, and one of them for each label was the case before.
	case !a.DType.IsFloat() || int(a.Elems())%all != 0 || int(a.Elems()) == all:
		return nil
	default:
		p.classes = int(a.Elems()) / all
		if p.stride = p.step(a, labels, n); p.stride == 0 {
			return nil
		}
	}
	p.data = values(a)
	return p
}

// step is the stride between the scores of a label: 1 if classes are the last axis, that of channels if they are the
// first one of a sample; 0 if neither is.
func (p *prediction) step(a *ir.Array, labels []int64, n int) int {
	of, _ := sample(a, n)
	squeezed := func(s []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(s), func(d int64) bool { return d == 1 })
	}
	last := len(a.Shape) > 0 && a.Shape[len(a.Shape)-1] == int64(p.classes)
	switch {
	case len(labels) > 1 && len(of) > 1 && of[0] == int64(p.classes) && slices.Equal(squeezed(of[1:]), squeezed(labels)):
		return p.labels
	case last && (len(a.Shape) <= maxScoreRank || len(labels) > 1):
		return 1
	case len(labels) == 1 && len(of) > 1 && of[0] == int64(p.classes) && slices.Equal(of[1:], labels):
		return p.labels
	}
	return 0
}

// checkLabels reports labels that have no score, as those that count from 1, which would be wrong answers of any model.
func (p *prediction) checkLabels(b *Batch, labels [][]int64) error {
	if p.classes < 2 {
		return nil
	}
	for i, row := range labels {
		for _, label := range row {
			if label >= int64(p.classes) {
				return inapplicable("label %d of sample %d is not a class of output %q, which are 0 to %d", label, b.First+i,
					p.output, p.classes-1)
			}
		}
	}
	return nil
}

// score is that of class c for label k of sample i; the prediction itself without scores of classes.
func (p *prediction) score(i, k, c int) float64 {
	if p.stride == 1 {
		return p.data[(i*p.labels+k)*max(1, p.classes)+c]
	}
	// Classes are channels: the scores of one class for all labels of a sample are next to each other.
	return p.data[i*p.labels*p.classes+c*p.stride+k]
}

// class is the predicted class of label k of sample i, none for NaNs.
func (p *prediction) class(i, k int) int64 {
	if p.classes == 0 {
		return int64(p.score(i, k, 0))
	}
	return largest(p.classes, func(c int) float64 { return p.score(i, k, c) })
}

// rank is the number of classes with a higher score than the class, or the same one and a lower number. A class without
// a score is the last.
func (p *prediction) rank(i, k int, class int64) int {
	if class < 0 || class >= int64(p.classes) || p.score(i, k, int(class)) != p.score(i, k, int(class)) {
		return p.classes
	}
	own, above := p.score(i, k, int(class)), 0
	for c := range p.classes {
		if d := cmp.Compare(p.score(i, k, c), own); d > 0 || d == 0 && c < int(class) {
			above++
		}
	}
	return above
}
