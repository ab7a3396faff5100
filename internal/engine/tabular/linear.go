package tabular

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func linears() []op.Op {
	return []op.Op{
		{Type: "LinearClassifier", Since: 1, Shape: linearClassifierShape, Run: runLinearClassifier},
		{Type: "LinearRegressor", Since: 1, Shape: linearRegressorShape, Run: runLinearRegressor},
	}
}

// A linear model has a row of coefficients, and optionally an intercept, per score.
type linear struct {
	coefficients, intercepts []float32
	scores                   int
	after                    transform
}

// newLinear is the model with one score per intercept or, without intercepts, with the given number of scores.
func newLinear(n *op.Node, scores int) (*linear, error) {
	m := &linear{coefficients: n.Floats("coefficients"), intercepts: n.Floats("intercepts"), scores: scores}
	if len(m.intercepts) > 0 && len(m.intercepts) != scores {
		return nil, fmt.Errorf("%d intercepts for %d scores", len(m.intercepts), scores)
	}
	if scores < 1 || len(m.coefficients)%scores != 0 {
		return nil, fmt.Errorf("%d coefficients for %d scores", len(m.coefficients), scores)
	}
	var err error
	m.after, err = transformOf(n.Text("post_transform", "NONE"))
	return m, err
}

// table is input X, which must have as many features as the model.
func (m *linear) table(in []*ir.Array) (x *ir.Array, rows int, err error) {
	x, rows, features, err := table(in)
	if err == nil && features != len(m.coefficients)/m.scores {
		err = fmt.Errorf("X is %s, the model has %d features", x, len(m.coefficients)/m.scores)
	}
	return x, rows, err
}

// each calls f with the scores of every row, in order.
func (m *linear) each(c *op.Call, f func(row int, scores []float64)) error {
	x, rows, err := m.table(c.In)
	if err != nil {
		return err
	}
	features := len(m.coefficients) / m.scores
	row, scores := make([]float64, features), make([]float64, m.scores)
	for i := range rows {
		number.Read(row, x, i*features)
		for k := range scores {
			scores[k] = 0
			if len(m.intercepts) > 0 {
				scores[k] = float64(m.intercepts[k])
			}
			for j, w := range m.coefficients[k*features : (k+1)*features] {
				// The conversion prevents a fused multiply-add: results are the same on all CPUs.
				scores[k] += float64(float64(w) * row[j])
			}
		}
		f(i, scores)
	}
	return nil
}

func newLinearRegressor(n *op.Node) (*linear, error) {
	targets := n.Int("targets", 1)
	if targets < 1 || targets > 1<<20 {
		return nil, fmt.Errorf("%d targets", targets)
	}
	return newLinear(n, int(targets))
}

func linearRegressorShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	m, err := newLinearRegressor(n)
	if err != nil {
		return nil, err
	}
	_, rows, err := m.table(in)
	if err != nil {
		return nil, err
	}
	return op.One(ir.Float, int64(rows), int64(m.scores))
}

func runLinearRegressor(c *op.Call) error {
	m, err := newLinearRegressor(c.Node)
	if err != nil {
		return err
	}
	return m.each(c, func(row int, scores []float64) {
		m.after.apply(scores)
		number.Write(c.Out[0], row*m.scores, scores)
	})
}

// newLinearClassifier may have one score for two classes: that of the second.
func newLinearClassifier(n *op.Node) (*linear, classes, error) {
	labels, err := classesOf(n, "classlabels_ints", "classlabels_strings")
	if err != nil {
		return nil, labels, err
	}
	scores := labels.len()
	if len(n.Floats("intercepts")) == 1 && scores == 2 {
		scores = 1
	}
	m, err := newLinear(n, scores)
	return m, labels, err
}

func linearClassifierShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	m, labels, err := newLinearClassifier(n)
	if err != nil {
		return nil, err
	}
	_, rows, err := m.table(in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: labels.dtype(), Shape: []int64{int64(rows)}},
		{DType: ir.Float, Shape: []int64{int64(rows), int64(labels.len())}}}, nil
}

func runLinearClassifier(c *op.Call) error {
	m, labels, err := newLinearClassifier(c.Node)
	if err != nil {
		return err
	}
	return m.each(c, func(row int, scores []float64) {
		label := best(scores)
		if m.scores < labels.len() {
			if scores[0] > 0 {
				label = 1
			}
			scores = []float64{m.after.first(scores[0], true), scores[0]}
		} else if m.scores == 1 && scores[0] <= 0 {
			label = -1
		}
		m.after.apply(scores)
		putClass(c, labels, row, label, scores)
	})
}

// putClass writes a classifier's outputs for a row, if they have consumers.
func putClass(c *op.Call, labels classes, row, label int, scores []float64) {
	if c.Out[0] != nil {
		labels.put(c.Out[0], row, label)
	}
	if len(c.Out) > 1 && c.Out[1] != nil {
		number.Write(c.Out[1], row*len(scores), scores)
	}
}
