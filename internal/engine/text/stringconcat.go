package text

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func concatShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := words(in, 0, "X")
	if err != nil {
		return nil, err
	}
	y, err := words(in, 1, "Y")
	if err != nil {
		return nil, err
	}
	shape, err := op.BroadcastShapes(x.Shape, y.Shape)
	if err != nil {
		return nil, err
	}
	return op.One(ir.String, shape...)
}

// maxText is the maximum size in bytes of the text of a result, whatever the memory limit: text that doubles from node
// to node would take gigabytes and many seconds before it exceeds that limit.
const maxText = 256 << 20

func runConcat(c *op.Call) error {
	x, y, z := broadcast(c.In[0], c.Out[0].Shape), broadcast(c.In[1], c.Out[0].Shape), c.Out[0].Text
	at := make([]int64, len(c.Out[0].Shape))
	bytes := int64(0)
	for i := range z {
		a, b := x.at(at), y.at(at)
		if bytes = op.Plus(bytes, int64(len(a)+len(b))); bytes > maxText {
			return fmt.Errorf("the text of the result exceeds %s", humanize.IBytes(maxText))
		}
		if err := c.Account.Check(bytes); err != nil {
			return err
		}
		z[i] = a + b
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < c.Out[0].Shape[k] {
				break
			}
			at[k] = 0
		}
	}
	return nil
}

// A spread is a tensor that broadcasts to a larger shape.
type spread struct {
	text    []string
	strides []int64
}

func broadcast(a *ir.Array, shape []int64) spread {
	s := spread{a.Text, make([]int64, len(shape))}
	ahead := len(shape) - len(a.Shape)
	for i, stride := range op.Strides(a.Shape) {
		if a.Shape[i] != 1 {
			s.strides[ahead+i] = stride
		}
	}
	return s
}

func (s spread) at(place []int64) string {
	i := int64(0)
	for k, p := range place {
		i += p * s.strides[k]
	}
	return s.text[i]
}
