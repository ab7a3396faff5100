package tabular

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A treeClassifier is an ensemble whose targets are classes.
type treeClassifier struct {
	*ensemble
	labels   classes
	single   bool // all leaves of a model of two classes vote for the same class
	positive bool // all weights are non-negative: they are probabilities of the second class
}

func newClassifier(n *op.Node) (*treeClassifier, error) {
	labels, err := classesOf(n, "classlabels_int64s", "classlabels_strings")
	if err != nil {
		return nil, err
	}
	e, err := listed(n, "class", "class_ids", labels.len())
	if err != nil {
		return nil, err
	}
	if len(e.base) > e.targets {
		return nil, fmt.Errorf("%d base values for %d classes", len(e.base), e.targets)
	}
	t := &treeClassifier{ensemble: e, labels: labels, positive: true, single: e.targets == 2 && len(e.votes) > 0}
	for _, v := range e.votes {
		t.positive = t.positive && v.weight >= 0
		t.single = t.single && v.target == e.votes[0].target
	}
	return t, nil
}

func classifierShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	t, err := prepared(n, newClassifier)
	if err != nil {
		return nil, err
	}
	_, rows, _, err := table(in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{
		{DType: t.labels.dtype(), Shape: []int64{int64(rows)}},
		{DType: ir.Float, Shape: []int64{int64(rows), int64(t.targets)}},
	}, nil
}

func runClassifier(c *op.Call) error {
	t, err := prepared(c.Node, newClassifier)
	if err != nil {
		return err
	}
	return t.each(c, func(row int, scores []float64, voted []bool) {
		label := t.decide(scores, voted)
		putClass(c, t.labels, row, label, scores)
	})
}

// decide finishes the scores of one row and returns the label's index, -1 against a single class.
func (t *treeClassifier) decide(scores []float64, voted []bool) int {
	for k, b := range t.base {
		scores[k] = t.rounded(scores[k] + b)
		voted[k] = true
	}
	label := 0
	switch {
	case len(scores) == 1:
		if scores[0] <= 0 {
			label = -1
		}
	case t.single:
		return t.decideTwo(scores)
	default:
		label = bestOf(scores, voted)
	}
	t.after.apply(scores)
	return label
}

// decideTwo is for votes that are all for one of two classes. The specification does not define this case; this is ONNX
// Runtime's behaviour. Votes for the first class mean the second: they are its probability if they are non-negative,
// else its decision value. SOFTMAX is applied as in onnx's reference implementation; ONNX Runtime does not apply it
// here.
func (t *treeClassifier) decideTwo(scores []float64) int {
	only := t.votes[0].target
	s, border := scores[only], 0.0
	if t.positive {
		border = 0.5
	}
	if only == 0 {
		scores[0], scores[1] = t.rounded(t.after.first(s, t.positive)), s
	}
	t.after.apply(scores)
	if s > border {
		return 1
	}
	return 0
}

// bestOf is the highest score of the classes with votes, the first of equal ones; 0 if there are none. ONNX Runtime
// does not compare two classes that both have votes: it selects the second if its score is positive. That is not the
// top class of the specification.
func bestOf(scores []float64, voted []bool) int {
	at := -1
	for i, x := range scores {
		if voted[i] && (at < 0 || x > scores[at]) {
			at = i
		}
	}
	return max(at, 0)
}
