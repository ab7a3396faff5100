package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func triluShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if len(a.Shape) < 2 {
		return nil, fmt.Errorf("input is %s, want at least two axes", a)
	}
	if k := op.Opt(in, 1); k != nil && k.Elems() != 1 {
		return nil, fmt.Errorf("k is %s, want one number", k)
	}
	return op.One(a.DType, a.Shape...)
}

// runTrilu keeps the elements on and above diagonal k, or on and below it.
func runTrilu(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	k := int64(0)
	if c.Opt(1) != nil {
		var err error
		if k, err = scalar(c.In, 1, "k"); err != nil {
			return err
		}
	}
	if dst.Elems() == 0 {
		return nil // there may be any number of empty rows
	}
	copyAll(c.Pool, dst, src)
	rank := len(dst.Shape)
	rows, cols := dst.Shape[rank-2], dst.Shape[rank-1]
	upper := c.Bool("upper", true)
	k = within(k, -rows-1, cols+1)
	zero := ir.NewArray(dst.DType)
	for row := range rows {
		from, to := within(row+k+1, 0, cols), cols
		if upper {
			from, to = 0, within(row+k, 0, cols)
		}
		s := &stridedTransfer{dst: int(row*cols + from)}
		s.add(op.Product(dst.Shape[:rank-2]), rows*cols, 0)
		s.add(to-from, 1, 0)
		move(c.Pool, s, dst, zero)
	}
	return nil
}
