package grad

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// reductions are gradients of reductions. x, y and dy have the same rank in them: reduced axes have size 1 in y and dy.
var reductions = []rule{
	reduction("ReduceSum", func(r reductionNode) *ir.Value { return r.dy }),
	reduction("ReduceMean", func(r reductionNode) *ir.Value { return r.Scale(r.dy, r.dt, 1/r.count()) }),
	reduction("ReduceMax", extreme),
	reduction("ReduceMin", extreme),
	reduction("ReduceL1", func(r reductionNode) *ir.Value { return r.mul(r.Op("Sign", []*ir.Value{r.x()}), r.dy) }),
	reduction("ReduceL2", func(r reductionNode) *ir.Value {
		zero := r.Scalar(r.dt, 0) // the gradient at 0 is 0
		per := r.Op("Where", []*ir.Value{r.Op("Equal", []*ir.Value{r.y(), zero}), zero,
			r.Op("Div", []*ir.Value{r.dy, r.y()})})
		return r.mul(r.x(), per)
	}),
	reduction("ReduceSumSquare", func(r reductionNode) *ir.Value { return r.mul(r.x(), r.Scale(r.dy, r.dt, 2)) }),
	reduction("ReduceLogSum", func(r reductionNode) *ir.Value {
		return r.Op("Div", []*ir.Value{r.dy, r.Op("Exp", []*ir.Value{r.y()})})
	}),
	reduction("ReduceLogSumExp", func(r reductionNode) *ir.Value {
		return r.mul(r.Op("Exp", []*ir.Value{r.Op("Sub", []*ir.Value{r.x(), r.y()})}), r.dy)
	}),
	reduction("ReduceProd", func(r reductionNode) *ir.Value { return r.mul(r.others(), r.dy) }),
}

// A reductionNode is a reduction node with its gradient.
type reductionNode struct {
	*Builder
	node *ir.Node
	dt   ir.DType
	keep []int64 // the shape with reduced axes of size 1
	dy   *ir.Value
}

// reduction returns a rule for the gradient f, which broadcasts to the shape of x.
func reduction(typ string, f func(r reductionNode) *ir.Value) rule {
	return rule{Type: typ, Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		r := reductionNode{Builder: t.Builder, node: n, dt: t.DType(n.Input(0))}
		var err error
		if r.keep, err = keepDimsShape(t, n); err != nil {
			return nil, err
		}
		r.dy = r.keepAxes(dy[0])
		dx := f(r)
		// The others multiply by a tensor of the shape of x.
		if typ == "ReduceSum" || typ == "ReduceMean" || typ == "ReduceLogSum" {
			dx = t.Op("Expand", []*ir.Value{dx, t.Ints(t.Shape(n.Input(0))...)})
		}
		return []*ir.Value{dx}, nil
	}}
}

// keepDimsShape returns the shape of n's result with the reduced axes.
func keepDimsShape(t *Tape, n *ir.Node) ([]int64, error) {
	x, y := t.Shape(n.Input(0)), t.Shape(n.Outputs[0])
	if len(x) == len(y) {
		return y, nil
	}
	axes, _, known := t.elements.list(n, "axes", 1)
	if !known {
		return nil, fmt.Errorf("axes depending on data are not supported")
	}
	keep := slices.Clone(x)
	for i := range keep {
		if len(axes) == 0 {
			keep[i] = 1
		}
	}
	for _, axis := range axes {
		keep[fromFront(axis, len(x))] = 1
	}
	return keep, nil
}

// keepAxes returns v with the reduced axes in its shape.
func (r reductionNode) keepAxes(v *ir.Value) *ir.Value {
	if len(r.keep) == len(r.Shape(r.node.Outputs[0])) {
		return v
	}
	return r.Reshape(v, r.keep)
}

func (r reductionNode) x() *ir.Value { return r.node.Input(0) }

func (r reductionNode) y() *ir.Value { return r.keepAxes(r.node.Outputs[0]) }

func (r reductionNode) mul(a, b *ir.Value) *ir.Value { return r.Op("Mul", []*ir.Value{a, b}) }

// count returns the number of elements per result.
func (r reductionNode) count() float64 {
	n := 1.0
	for i, d := range r.Shape(r.x()) {
		if r.keep[i] != d {
			n *= float64(d)
		}
	}
	return n
}

// extreme divides the gradient equally among all elements that equal the maximum or minimum.
func extreme(r reductionNode) *ir.Value {
	is := r.Cast(r.Op("Equal", []*ir.Value{r.x(), r.y()}), r.dt)
	many := r.SumTo(is, r.Shape(r.x()), r.keep)
	return r.mul(is, r.Op("Div", []*ir.Value{r.dy, many}))
}

// others returns for each element the product of the others in its reduction, which may be zero: of those before and
// those after it.
func (r reductionNode) others() *ir.Value {
	x := r.Shape(r.x())
	var order []int64
	for _, folds := range []bool{false, true} {
		for i, d := range x {
			if (r.keep[i] != d) == folds {
				order = append(order, int64(i))
			}
		}
	}
	ordered := make([]int64, len(x))
	for i, axis := range order {
		ordered[i] = x[axis]
	}
	rows := r.Reshape(r.Transpose(r.x(), order), []int64{-1, int64(r.count())})
	last := r.Ints(-1)
	// Not y/x, which is 0/0 where an element is zero.
	before := r.Op("CumProd", []*ir.Value{rows, last}, ir.IntAttr("exclusive", 1))
	after := r.Op("CumProd", []*ir.Value{rows, last}, ir.IntAttr("exclusive", 1), ir.IntAttr("reverse", 1))
	return r.Transpose(r.Reshape(r.mul(before, after), ordered), inverse(order))
}
