package signal

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// windows are sums of cosines: c[0] - c[1] cos(x) + c[2] cos(2x), with x from 0 to 2π.
func windows() []op.Op {
	var rows []op.Op
	for _, w := range []struct {
		name string
		c    [3]float64
	}{
		{"HannWindow", [3]float64{0.5, 0.5, 0}},
		{"HammingWindow", [3]float64{25. / 46, 21. / 46, 0}},
		{"BlackmanWindow", [3]float64{0.42, 0.5, 0.08}},
	} {
		rows = append(rows, op.Op{Type: w.name, Since: 17, Shape: windowShape,
			Run: func(c *op.Call) error { return runWindow(c, w.c) }})
	}
	return rows
}

func windowShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	size, err := scalar(in, 0, "size")
	if err != nil {
		return nil, err
	}
	if !(size >= 0 && size <= maxLength) {
		return nil, fmt.Errorf("size is %v, want 0 to %d", size, int64(maxLength))
	}
	return one(n.Int("output_datatype", int64(ir.Float)), int64(size))
}

func runWindow(c *op.Call, coef [3]float64) error {
	n := int(c.Out[0].Elems())
	steps := n - 1 // a symmetric window includes its end point
	if c.Bool("periodic", true) {
		steps = n
	}
	for i := range n {
		x := 2 * math.Pi * float64(i) / float64(max(steps, 1))
		y := coef[0] - coef[1]*math.Cos(x) + coef[2]*math.Cos(2*x)
		if steps == 0 {
			y = 1 // a window of one sample
		}
		number.Write(c.Out[0], i, []float64{y})
	}
	return nil
}
