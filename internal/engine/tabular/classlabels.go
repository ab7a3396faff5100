package tabular

import (
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// classes are the labels of a classifier: numbers or strings.
type classes struct {
	ints  []int64
	texts []string
}

// classesOf reads the attributes that hold labels, exactly one of which must be present.
func classesOf(n *op.Node, ints, texts string) (classes, error) {
	c := classes{n.Ints(ints), n.Texts(texts)}
	if c.len() == 0 {
		return c, errors.New("no class labels")
	}
	if len(c.ints) > 0 && len(c.texts) > 0 {
		return c, fmt.Errorf("class labels in both %s and %s", ints, texts)
	}
	return c, nil
}

func (c classes) len() int { return max(len(c.ints), len(c.texts)) }

func (c classes) dtype() ir.DType {
	if len(c.texts) > 0 {
		return ir.String
	}
	return ir.Int64
}

// put writes label i to element at of a. i is -1 if a model of one class rejects it.
func (c classes) put(a *ir.Array, at, i int) {
	switch {
	case len(c.texts) > 0 && i >= 0:
		a.Text[at] = c.texts[i]
	case len(c.texts) > 0:
		a.Text[at] = ""
	case i >= 0:
		ir.View[int64](a)[at] = c.ints[i]
	default:
		ir.View[int64](a)[at] = 0
	}
}

// best is the index of the highest score, the first of equal ones; NaN is never higher.
func best(scores []float64) int {
	at := 0
	for i, x := range scores {
		if x > scores[at] {
			at = i
		}
	}
	return at
}
