package tabular

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// vectors are the support vector machines.
func vectors() []op.Op {
	return []op.Op{
		{Type: "SVMClassifier", Since: 1, Shape: svmClassifierShape, Run: runSVMClassifier},
		{Type: "SVMRegressor", Since: 1, Shape: svmRegressorShape, Run: runSVMRegressor},
	}
}

// An svm compares rows with support vectors or, if there are none, multiplies them by coefficients.
type svm struct {
	kernel              string
	gamma, bias, degree float64
	count               int // of support vectors
	support             []float32
	coefficients, rho   []float32
	after               transform
}

func newSVM(n *op.Node, count int) (*svm, error) {
	s := &svm{
		kernel: n.Text("kernel_type", "LINEAR"), count: count,
		support: n.Floats("support_vectors"), coefficients: n.Floats("coefficients"), rho: n.Floats("rho"),
	}
	if params := n.Floats("kernel_params"); len(params) == 3 {
		s.gamma, s.bias, s.degree = float64(params[0]), float64(params[1]), float64(params[2])
	} else if len(params) > 0 {
		return nil, fmt.Errorf("%d kernel_params, want gamma, coef0 and degree", len(params))
	}
	if !slices.Contains([]string{"LINEAR", "POLY", "RBF", "SIGMOID"}, s.kernel) {
		return nil, fmt.Errorf("kernel_type is %q, want LINEAR, POLY, RBF or SIGMOID", s.kernel)
	}
	if len(s.rho) == 0 || len(s.coefficients) == 0 {
		return nil, errors.New("rho or coefficients are missing")
	}
	if count < 0 || count > 0 && (len(s.support) == 0 || len(s.support)%count != 0 || len(s.coefficients)%count != 0) {
		return nil, fmt.Errorf("%d numbers and %d coefficients for %d support vectors", len(s.support),
			len(s.coefficients), count)
	}
	var err error
	s.after, err = transformOf(n.Text("post_transform", "NONE"))
	return s, err
}

// product is the kernel's value for a row and a vector.
func (s *svm) product(row []float64, v []float32) float64 {
	sum := 0.0
	if s.kernel == "RBF" {
		for i, x := range row {
			d := x - float64(v[i])
			// The conversions prevent fused multiply-adds: results are the same on all CPUs.
			sum += float64(d * d)
		}
		return math.Exp(-s.gamma * sum)
	}
	for i, x := range row {
		sum += float64(x * float64(v[i]))
	}
	switch s.kernel {
	case "POLY":
		return math.Pow(s.gamma*sum+s.bias, s.degree)
	case "SIGMOID":
		return math.Tanh(s.gamma*sum + s.bias)
	}
	return sum
}

// products are the kernel's values for a row and each support vector.
func (s *svm) products(out, row []float64) {
	size := len(s.support) / s.count
	for i := range out {
		out[i] = s.product(row, s.support[i*size:(i+1)*size])
	}
}

// features is the required number of features per row; linear is the number of models that share the coefficients if
// there are no vectors.
func (s *svm) features(linear int) int {
	if s.count > 0 {
		return len(s.support) / s.count
	}
	return len(s.coefficients) / linear
}

// rows checks input X and calls f for each of its rows.
func (s *svm) rows(in []*ir.Array, linear int, f func(i int, row []float64)) error {
	x, rows, features, err := table(in)
	if err != nil {
		return err
	}
	if features != s.features(linear) {
		return fmt.Errorf("X is %s, the model has %d features", x, s.features(linear))
	}
	row := make([]float64, features)
	for i := range rows {
		number.Read(row, x, i*features)
		f(i, row)
	}
	return nil
}

func newSVMRegressor(n *op.Node) (*svm, error) {
	count := n.Int("n_supports", 0)
	if count < 0 || count > int64(len(n.Floats("coefficients"))) {
		return nil, fmt.Errorf("%d supports for %d coefficients", count, len(n.Floats("coefficients")))
	}
	s, err := newSVM(n, int(count))
	if err == nil && s.count == 0 {
		s.kernel = "LINEAR"
	}
	return s, err
}

func svmRegressorShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := newSVMRegressor(n); err != nil {
		return nil, err
	}
	_, rows, _, err := table(in)
	if err != nil {
		return nil, err
	}
	return op.One(ir.Float, int64(rows), 1)
}

func runSVMRegressor(c *op.Call) error {
	s, err := newSVMRegressor(c.Node)
	if err != nil {
		return err
	}
	products := make([]float64, s.count)
	return s.rows(c.In, 1, func(i int, row []float64) {
		y := float64(s.rho[0])
		if s.count == 0 {
			y += s.product(row, s.coefficients)
		} else {
			s.products(products, row)
			for k, p := range products {
				y += float64(float64(s.coefficients[k]) * p)
			}
		}
		scores := []float64{y}
		if c.Bool("one_class", false) {
			if scores[0] = -1; y > 0 {
				scores[0] = 1
			}
		} else {
			s.after.apply(scores)
		}
		number.Write(c.Out[0], i, scores)
	})
}
