package distill

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// checkDistillation reports invalid kinds of features and weights of teachers.
func (o *FineTune) checkDistillation() error {
	for _, kind := range o.Features {
		if !slices.Contains(featureKinds, kind) {
			return pass.OptionErrorf("--features %s: unknown kind; use some of %s", kind, strings.Join(featureKinds, ", "))
		}
	}
	_, err := o.teacherWeights()
	return err
}

// teacherWeights returns the weights of the teachers, whose sum is 1.
func (o *FineTune) teacherWeights() ([]float64, error) {
	n, given := max(1, len(o.Teacher)), o.TeacherWeights
	if len(given) == 0 {
		return slices.Repeat([]float64{1 / float64(n)}, n), nil
	}
	if len(given) != n {
		return nil, pass.OptionErrorf("--teacher-weights: %d weights for %d teachers", len(given), n)
	}
	weights, sum := make([]float64, n), 0.0
	for i, text := range given {
		w, err := strconv.ParseFloat(text, 64)
		if err != nil || !(w >= 0) || math.IsInf(w, 0) {
			return nil, pass.OptionErrorf("--teacher-weights: %q is no weight", text)
		}
		weights[i] = w
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, pass.OptionErrorf("--teacher-weights: the sum must be positive")
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights, nil
}
