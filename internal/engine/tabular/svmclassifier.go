package tabular

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An svmClassifier compares every pair of classes (one versus one), or scores each class separately if there are no
// support vectors.
type svmClassifier struct {
	*svm
	labels       classes
	first, size  []int // of each class among the vectors
	probA, probB []float32
	positive     bool // all coefficients are
}

func newSVMClassifier(n *op.Node) (*svmClassifier, error) {
	labels, err := classesOf(n, "classlabels_ints", "classlabels_strings")
	if err != nil {
		return nil, err
	}
	t := &svmClassifier{labels: labels, probA: n.Floats("prob_a"), probB: n.Floats("prob_b")}
	count := 0
	for _, k := range n.Ints("vectors_per_class") {
		if k < 0 || k > int64(len(n.Floats("support_vectors"))) {
			return nil, fmt.Errorf("vectors_per_class %v exceeds the number of vectors", n.Ints("vectors_per_class"))
		}
		t.first, t.size = append(t.first, count), append(t.size, int(k))
		count += int(k)
	}
	if t.svm, err = newSVM(n, count); err != nil {
		return nil, err
	}
	t.positive = slices.Min(t.coefficients) >= 0
	if count == 0 {
		t.kernel, t.probA = "LINEAR", nil
	}
	return t, t.check()
}

func (t *svmClassifier) check() error {
	k := t.labels.len()
	if t.count == 0 {
		if len(t.coefficients)%k != 0 {
			return fmt.Errorf("%d coefficients for %d classes", len(t.coefficients), k)
		}
		return nil
	}
	if k < 2 || len(t.size) != k || len(t.coefficients) != (k-1)*t.count {
		return fmt.Errorf("%d coefficients and %d vectors do not match %d classes", len(t.coefficients), t.count, k)
	}
	pairs := k * (k - 1) / 2
	if len(t.rho) < pairs || len(t.probA) != len(t.probB) || len(t.probA) > 0 && len(t.probA) < pairs {
		return fmt.Errorf("rho, prob_a or prob_b do not match %d pairs of classes", pairs)
	}
	return nil
}

// columns is the number of scores per row: one per class or, with vectors and without probabilities, one per pair.
func (t *svmClassifier) columns() int {
	k := t.labels.len()
	if t.count > 0 && len(t.probA) == 0 && k > 2 {
		return k * (k - 1) / 2
	}
	return k
}

func svmClassifierShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	t, err := newSVMClassifier(n)
	if err != nil {
		return nil, err
	}
	_, rows, _, err := table(in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: t.labels.dtype(), Shape: []int64{int64(rows)}},
		{DType: ir.Float, Shape: []int64{int64(rows), int64(t.columns())}}}, nil
}

func runSVMClassifier(c *op.Call) error {
	t, err := newSVMClassifier(c.Node)
	if err != nil {
		return err
	}
	products := make([]float64, t.count)
	return t.rows(c.In, t.labels.len(), func(i int, row []float64) {
		var label int
		var scores []float64
		if t.count == 0 {
			scores = t.linear(row)
			label = best(scores)
		} else {
			t.products(products, row)
			label, scores = t.compete(products)
		}
		if len(scores) < t.columns() {
			scores = []float64{t.after.first(scores[0], false), scores[0]}
		}
		t.after.apply(scores)
		putClass(c, t.labels, i, label, scores)
	})
}

func (t *svmClassifier) linear(row []float64) []float64 {
	scores := make([]float64, t.labels.len())
	size := len(t.coefficients) / len(scores)
	for k := range scores {
		scores[k] = float64(t.rho[0]) + t.product(row, t.coefficients[k*size:(k+1)*size])
	}
	return scores
}

// compete counts the votes of each class. Its scores are those of the pairs or, with prob_a and prob_b, probabilities
// of the classes.
func (t *svmClassifier) compete(products []float64) (winner int, scores []float64) {
	k := t.labels.len()
	votes := make([]float64, k)
	for i := range k {
		for j := i + 1; j < k; j++ {
			// As in libsvm: a vector has a coefficient for each other class, in their order. That for class j is in row j of
			// vectors of later classes, and in row j-1 of those of earlier ones, as their own class is left out.
			s := float64(t.rho[len(scores)]) + t.part(products, j-1, i) + t.part(products, i, j)
			scores = append(scores, s)
			if s > 0 {
				votes[i]++
			} else {
				votes[j]++
			}
		}
	}
	if len(t.probA) > 0 {
		scores = t.probabilities(scores)
	}
	return best(votes), scores
}

// part is the contribution of the vectors of one class, with the coefficients of that row.
func (t *svmClassifier) part(products []float64, row, class int) float64 {
	sum := 0.0
	for i := t.first[class]; i < t.first[class]+t.size[class]; i++ {
		sum += float64(float64(t.coefficients[row*t.count+i]) * products[i])
	}
	return sum
}

// probabilities couples those of the pairs (Wu, Lin, Weng: Probability Estimates for Multi-class Classification by
// Pairwise Coupling, JMLR 2004, algorithm 2).
func (t *svmClassifier) probabilities(scores []float64) []float64 {
	k := t.labels.len()
	r := make([][]float64, k)
	for i := range r {
		r[i] = make([]float64, k)
	}
	pair := 0
	for i := range k {
		for j := i + 1; j < k; j++ {
			p := 1 / (1 + math.Exp(scores[pair]*float64(t.probA[pair])+float64(t.probB[pair])))
			// The bounds here, and those of the iterations in couple, are libsvm's.
			r[i][j] = min(max(p, 1e-7), 1-1e-7)
			r[j][i] = 1 - r[i][j]
			pair++
		}
	}
	return couple(r)
}

func couple(r [][]float64) []float64 {
	k := len(r)
	q, qp, p := make([][]float64, k), make([]float64, k), make([]float64, k)
	for i := range q {
		q[i], p[i] = make([]float64, k), 1/float64(k)
		for j := range q[i] {
			if j != i {
				q[i][i] += r[j][i] * r[j][i]
				q[i][j] = -r[j][i] * r[i][j]
			}
		}
	}
	for range max(100, k) {
		pqp, worst := 0.0, 0.0
		for i := range q {
			qp[i] = 0
			for j, x := range q[i] {
				qp[i] += x * p[j]
			}
			pqp += p[i] * qp[i]
		}
		for i := range qp {
			worst = max(worst, math.Abs(qp[i]-pqp))
		}
		if worst < 0.005/float64(k) {
			break
		}
		for i := range p {
			d := (pqp - qp[i]) / q[i][i]
			p[i] += d
			pqp = (pqp + d*(d*q[i][i]+2*qp[i])) / (1 + d) / (1 + d)
			for j := range p {
				qp[j] = (qp[j] + d*q[i][j]) / (1 + d)
				p[j] /= 1 + d
			}
		}
	}
	return p
}
