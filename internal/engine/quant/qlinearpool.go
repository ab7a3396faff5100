package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An image is the layout of a pool's input: channels first, or last if channels_last is set.
type image struct {
	batch, channels int
	spatial         []int64
	last            bool
}

func imageOf(n *op.Node, in []*ir.Array) (*image, error) {
	x, err := triple(in, 0, "X")
	if err != nil {
		return nil, err
	}
	rank := len(x.Shape)
	if rank < 3 {
		return nil, fmt.Errorf("input X is %s and has no spatial axes", x)
	}
	m := &image{int(x.Shape[0]), int(x.Shape[1]), x.Shape[2:], n.Bool("channels_last", false)}
	if m.last {
		m.channels, m.spatial = int(x.Shape[rank-1]), x.Shape[1:rank-1]
	}
	return m, checkParams(in, 3, "Y", x.DType)
}

// shape is that of a result with these spatial lengths.
func (m *image) shape(lengths []int64) []int64 {
	shape := append([]int64{int64(m.batch)}, lengths...)
	if m.last {
		return append(shape, int64(m.channels))
	}
	return slices.Insert(shape, 1, int64(m.channels))
}

// at is the offset of channel i, counted over all images, and the stride of its n elements.
func (m *image) at(i, n int) (start, step int) {
	if m.last {
		return i/m.channels*m.channels*n + i%m.channels, m.channels
	}
	return i * n, 1
}

// poolParams are the parameters of X and Y.
func poolParams(c *op.Call) (x, y params, err error) {
	if x, err = paramsAt(c.In, 1, c.In[0].DType); err != nil {
		return x, y, err
	}
	y, err = paramsAt(c.In, 3, c.In[0].DType)
	return x, y, err
}

func averageAllShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	m, err := imageOf(n, in)
	if err != nil {
		return nil, err
	}
	s := ir.Spec{DType: in[0].DType, Shape: m.shape(slices.Repeat([]int64{1}, len(m.spatial)))}
	return []ir.Spec{s}, s.Valid()
}

// globalAveragePool sums integers and multiplies the sum once.
func globalAveragePool(c *op.Call) error {
	m, err := imageOf(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	x, y, err := poolParams(c)
	if err != nil {
		return err
	}
	n := int(op.Product(m.spatial))
	scale := x.scale / float32(y.scale*float32(n))
	signed := c.In[0].DType == ir.Int8
	c.Pool.Rows(m.batch*m.channels, 1+piece/(n+1), func(from, to int) {
		for i := from; i < to; i++ {
			start, step := m.at(i, n)
			// All zero points at once: n elements have n of them.
			sum := -n * int(x.zero)
			for k := range n {
				sum += int(whole(c.In[0].Data[start+k*step], signed))
			}
			requantizeRow(c.Out[0].Data[i:i+1], []int32{int32(sum)}, scale, y.zero, rangeOfType(y.dt))
		}
	})
	return nil
}

func whole(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

func averageShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	m, err := imageOf(n, in)
	if err != nil {
		return nil, err
	}
	w, err := conv.WindowsOf(n, m.spatial)
	if err != nil {
		return nil, err
	}
	s := ir.Spec{DType: in[0].DType, Shape: m.shape(w.Lengths())}
	return []ir.Spec{s}, s.Valid()
}

// averagePool sums dequantized values, in the order of the window. The zero point is added before the average is
// rounded.
func averagePool(c *op.Call) error {
	m, err := imageOf(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	w, err := conv.WindowsOf(c.Node, m.spatial)
	if err != nil {
		return err
	}
	x, y, err := poolParams(c)
	if err != nil {
		return err
	}
	values, padding := x.values(), c.Bool("count_include_pad", false)
	c.Pool.For(m.batch*m.channels, func(i int) {
		start, step := m.at(i, w.In())
		to, toStep := m.at(i, w.Out())
		var under []int
		for o := range w.Out() {
			under = w.Elements(under[:0], o)
			sum := float32(0)
			for _, at := range under {
				sum += values[c.In[0].Data[start+at*step]]
			}
			average := sum / float32(w.Counted(o, padding))
			c.Out[0].Data[to+o*toStep] = y.saturate(float32(average/y.scale) + float32(y.zero))
		}
	})
	return nil
}
