package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
)

func checkSmoothing(n *op.Node) error {
	if s := n.Float("smoothing", 0); !(s >= 0 && s < 1) {
		return fmt.Errorf("attribute smoothing is %v, want 0 to below 1", s)
	}
	return nil
}

// crossEntropy is -Σ q·log softmax(x), where q is 1-smoothing at the label, with smoothing distributed over all classes
// (Szegedy et al. 2016, section 7). Rows with the label ignore_index are skipped.
func crossEntropy[T number](n *op.Node, r row[T]) float64 {
	logs := r.spare[0]
	logSoftmax(logs, r.x)
	smoothing := decimal(n.Float("smoothing", 0))
	each, loss := smoothing/float64(len(logs)), -(1-smoothing)*float64(logs[r.label])
	if smoothing > 0 {
		for _, v := range logs {
			loss -= float64(each * float64(v))
		}
	}
	if r.dx == nil {
		return loss
	}
	exp(r.dx, logs)
	p := float64(r.dx[r.label])
	scaleShift(r.dx, r.dx, r.factor, -r.factor*each)
	r.dx[r.label] = T(r.factor * (p - each - (1 - smoothing)))
	return loss
}

func checkTemperature(n *op.Node) error {
	if t := n.Float("temperature", 1); !(t > 0) || math.IsInf(float64(t), 1) {
		return fmt.Errorf("attribute temperature is %v, want a positive number", t)
	}
	return nil
}

// distill is T²·Σ p·(log p - log q) with p the softmax of teacher/T and q that of student/T: T² makes the size of
// gradients independent of the temperature (Hinton et al. 2015, section 2).
func distill[T number](n *op.Node, r row[T]) float64 {
	t := decimal(n.Float("temperature", 1))
	student, teacher, p := r.spare[0], r.spare[1], r.spare[2]
	scaleShift(student, r.x, 1/t, 0)
	scaleShift(teacher, r.target, 1/t, 0)
	logSoftmax(student, student)
	logSoftmax(teacher, teacher)
	exp(p, teacher)
	loss := 0.0
	for i, v := range p {
		if v != 0 { // the logarithm of 0 is infinite; NaN makes the loss NaN
			loss += float64(float64(v) * (float64(teacher[i]) - float64(student[i])))
		}
	}
	if r.dx != nil {
		exp(student, student)
		sub(r.dx, student, p)
		// T² of the loss, and 1/T of the softmax's argument.
		scaleShift(r.dx, r.dx, r.factor*t, 0)
	}
	return t * t * loss
}
