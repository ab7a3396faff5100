package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func einsums() []op.Op {
	return []op.Op{{Type: "Einsum", Since: 12, Shape: einsumShape, Run: runEinsum, Work: einsumWork}}
}

// An einsum is one node: its equation, and the size of each label.
type einsum struct {
	*equation
	sizes map[label]int64
}

func einsumOf(n *op.Node, in []*ir.Array) (*einsum, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("no inputs")
	}
	ranks := make([]int, len(in))
	for i := range in {
		a, err := op.Arg(in, i, fmt.Sprint(i))
		if err != nil {
			return nil, err
		}
		if a.DType != in[0].DType || !isFloat(a.DType) && !isInteger(a.DType) {
			return nil, fmt.Errorf("input %d is %s, input 0 is %s", i, a, in[0])
		}
		ranks[i] = len(a.Shape)
	}
	eq, err := parseEquation(n.Text("equation", ""), ranks)
	if err != nil {
		return nil, err
	}
	e := &einsum{eq, map[label]int64{}}
	for i, t := range e.terms {
		for axis, l := range t {
			d := in[i].Shape[axis]
			// Sizes of 1 broadcast, also between operands, as in NumPy.
			switch have, ok := e.sizes[l]; {
			case !ok || have == 1:
				e.sizes[l] = d
			case d != have && d != 1:
				return nil, fmt.Errorf("input %d %s: axis %d has size %d, another axis with its label has %d", i,
					in[i], axis, d, have)
			}
		}
	}
	return e, nil
}

func isFloat(dt ir.DType) bool { return dt == ir.Float || dt == ir.Double || half(dt) }

func (e *einsum) shape(labels []label) []int64 {
	s := make([]int64, len(labels))
	for i, l := range labels {
		s[i] = e.sizes[l]
	}
	return s
}

func einsumShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	e, err := einsumOf(n, in)
	if err != nil {
		return nil, err
	}
	out := ir.Spec{DType: in[0].DType, Shape: e.shape(e.out)}
	if err := out.Valid(); err != nil {
		return nil, err
	}
	_, err = e.count(in, 1)
	return []ir.Spec{out}, err
}

func einsumWork(n *op.Node, in []*ir.Array, workers int) int64 {
	e, err := einsumOf(n, in)
	if err != nil {
		return 0
	}
	bytes, err := e.count(in, workers)
	if err != nil {
		return 0
	}
	return bytes
}

// count runs all steps without data to count scratch memory. It is an error if an intermediate product is too large.
func (e *einsum) count(in []*ir.Array, workers int) (int64, error) {
	c := &contraction{einsum: e, scratch: &scratch{counts: true}, workers: workers}
	err := c.run(in, &ir.Array{DType: in[0].DType, Shape: e.shape(e.out)})
	return c.most, err
}

func runEinsum(c *op.Call) error {
	e, err := einsumOf(c.Node, c.In)
	if err != nil {
		return err
	}
	r := &contraction{einsum: e, scratch: &scratch{mem: c.Work}, workers: c.Pool.Workers(), pool: c.Pool}
	return r.run(c.In, c.Out[0])
}
