package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// direct convolves without matrix products, row by row. It is the fallback for types and windows without a faster
// method.
func direct[T float](c *op.Call, g *Geometry, axpy func(y []T, a T, x []T)) {
	x, w, y := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	var bias []T
	if b := c.Opt(2); b != nil {
		bias = ir.View[T](b)
	}
	channels := g.Groups * g.OutC
	c.Pool.For(g.Batch*channels, func(i int) {
		image, m := i/channels, i%channels
		group := m / g.OutC
		out := part(y, i, g.OutArea())
		clear(out)
		if bias != nil {
			fill(out, bias[m])
		}
		addWindows(g, out, Input(g, x, image*g.Groups+group), part(w, m, g.Depth()), axpy)
	})
}

// addWindows adds one channel of the output.
func addWindows[T float](g *Geometry, y, x, w []T, axpy func(y []T, a T, x []T)) {
	var rows []coveredRow
	last := g.last()
	for o := range len(y) / g.out[last] {
		rows = g.rows(rows, o)
		row := part(y, o, g.out[last])
		for c := range g.InC {
			in, weights := part(x, c, g.inLen()), part(w, c, g.kernelSize())
			for _, r := range rows {
				for k := range g.kernel[last] {
					lo, hi, from := g.taps(last, k)
					addScaled(row[lo:hi], weights[r.tap*g.kernel[last]+k], in[r.off:][:g.in[last]], from,
						g.stride[last], axpy)
				}
			}
		}
	}
}

func addScaled[T float](y []T, a T, x []T, from, stride int, axpy func(y []T, a T, x []T)) {
	if len(y) == 0 {
		return
	}
	if stride == 1 {
		axpy(y, a, x[from:][:len(y)])
		return
	}
	for i := range y {
		y[i] += a * x[from+i*stride]
	}
}
