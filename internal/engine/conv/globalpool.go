package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// globalPools pool each channel into one number.
func globalPools() []op.Op {
	return wide(
		op.Op{Type: "GlobalAveragePool", Since: 1, Shape: globalAverage().global, ChannelsLast: averageLayouts,
			Run: runGlobalAverage},
		op.Op{Type: "GlobalMaxPool", Since: 1, Shape: globalMax().global, Run: globalMax().run},
		op.Op{Type: "GlobalLpPool", Since: 2, Shape: globalLpShape, Run: globalLp().run},
	)
}

func globalAverage() byType {
	return byType{ir.Float: averageAll[float32], ir.Double: averageAll[float64]}
}

// averageLayouts: an output of one pixel has equal elements in both layouts, and an input with channels last is
// float32.
func averageLayouts(*op.Node, []*ir.Array) op.Layouts { return op.AnyLayouts }

func runGlobalAverage(c *op.Call) error {
	if c.LastIn {
		averageLast(c)
		return nil
	}
	return globalAverage().run(c)
}

// averageLast sums pixels of several channels at once, in the lanes of total: results are bit-identical.
func averageLast(c *op.Call) {
	const several = 128
	x, y, channels := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0]), int(c.In[0].Shape[1])
	if len(y) == 0 {
		return
	}
	pieces, area := ceilDiv(channels, several), len(x)/len(y)
	c.Pool.For(len(y)/channels*pieces, func(i int) {
		var lane [8][several]float32
		image, from := i/pieces, i%pieces*several
		n := min(several, channels-from)
		for p := range area {
			row := x[(image*area+p)*channels+from:][:n]
			kernel.Add(lane[p%8][:n], lane[p%8][:n], row)
		}
		// In the order of total, as other pairs would round differently.
		for _, pair := range [][2]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3}, {0, 2}} {
			kernel.Add(lane[pair[0]][:n], lane[pair[0]][:n], lane[pair[1]][:n])
		}
		kernel.DivScalar(y[image*channels+from:][:n], lane[0][:n], float32(area))
	})
}

func globalMax() byType {
	return byType{ir.Float: maxAll[float32], ir.Double: maxAll[float64]}
}

func globalLp() byType {
	return byType{ir.Float: lpAll[float32], ir.Double: lpAll[float64]}
}

func globalLpShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := power(n); err != nil {
		return nil, err
	}
	return globalLp().global(n, in)
}

// global is the shape of X with spatial lengths of 1.
func (t byType) global(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := t.image(in)
	if err != nil {
		return nil, err
	}
	ones := make([]int, len(x.Shape)-2)
	for i := range ones {
		ones[i] = 1
	}
	return like(x, spatial(x, ones)...)
}

func averageAll[T float](c *op.Call) error {
	return eachWhole(c, func(x []T) T { return total(x) / T(len(x)) })
}

func maxAll[T float](c *op.Call) error {
	return eachWhole(c, func(x []T) T {
		if len(x) == 0 {
			return lowest[T]()
		}
		top := x[0]
		for _, v := range x {
			top = max(top, v)
		}
		return top
	})
}

func lpAll[T float](c *op.Call) error {
	p, err := power(c.Node)
	if err != nil {
		return err
	}
	lift := addPower[T](p)
	return eachWhole(c, func(x []T) T {
		powers := make([]T, len(x))
		lift(powers, x)
		sum := []T{total(powers)}
		root(sum, p)
		return sum[0]
	})
}

// total sums in eight lanes, which is faster and more accurate than one.
func total[T float](x []T) T {
	var lane [8]T
	for ; len(x) >= 8; x = x[8:] {
		for i := range lane {
			lane[i] += x[i]
		}
	}
	for i, v := range x {
		lane[i] += v
	}
	return (lane[0] + lane[4]) + (lane[1] + lane[5]) + ((lane[2] + lane[6]) + (lane[3] + lane[7]))
}

// eachWhole writes f of each channel.
func eachWhole[T float](c *op.Call, f func(x []T) T) error {
	x, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	if len(y) == 0 {
		return nil
	}
	n := len(x) / len(y)
	const enough = 1 << 14
	c.Pool.Rows(len(y), enough/(n+1), func(from, to int) {
		for i := from; i < to; i++ {
			y[i] = f(part(x, i, n))
		}
	})
	return nil
}
