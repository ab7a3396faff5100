package conv

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// maxPools are MaxPool of all versions: 8 added Indices, 10 dilations and ceil_mode, 12 integers; the defaults equal
// the earlier semantics.
func maxPools() []op.Op {
	return wide(op.Op{Type: "MaxPool", Since: 1, Shape: maxPoolShape, ChannelsLast: maxPoolLayouts,
		Run: maxPoolTypes().run})
}

func maxPoolTypes() byType {
	return byType{
		ir.Float:  maxPool[float32],
		ir.Double: maxPool[float64],
		ir.Int8:   maxPool[int8],
		ir.Uint8:  maxPool[uint8],
	}
}

func maxPoolShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	specs, err := maxPoolTypes().shape(n, in)
	if err != nil || n.NumOut() < 2 {
		return specs, err
	}
	return append(specs, ir.Spec{DType: ir.Int64, Shape: specs[0].Shape}), nil
}

// shape is the shape of an operator whose window follows from attributes alone.
func (t byType) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := t.image(in)
	if err != nil {
		return nil, err
	}
	w, err := poolWindow(n, x.Shape[2:])
	if err != nil {
		return nil, err
	}
	return like(x, spatial(x, w.out)...)
}

func poolWindow(n *op.Node, lengths []int64) (*window, error) {
	places := floorExtent
	if n.Bool("ceil_mode", false) {
		places = ceilExtent
	}
	return windowOf(n, lengths, nil, places)
}

func maxPool[T poolElement](c *op.Call) error {
	x, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	w, err := poolWindow(c.Node, c.In[0].Shape[2:])
	if err != nil || len(y) == 0 {
		return err
	}
	if len(c.Out) > 1 && c.Out[1] != nil {
		maxPoolIndices(c, w, x, y, ir.View[int64](c.Out[1]))
		return nil
	}
	if c.LastIn {
		maxPoolLast(c, w, x, y)
		return nil
	}
	channels := make([]func(y, x []T), c.Pool.Workers())
	c.Pool.Slots(len(y)/w.outLen(), func(ch, slot int) {
		if channels[slot] == nil {
			channels[slot] = maxChannel[T](w)
		}
		channels[slot](part(y, ch, w.outLen()), part(x, ch, w.inLen()))
	})
	return nil
}

// maxChannel returns a function that pools a channel: a window that covers only padding gets the lowest number, NaN
// propagates. It must not be called concurrently.
func maxChannel[T poolElement](w *window) func(y, x []T) {
	if rows := maxRowsOf(w); rows != nil {
		if pool, ok := any(rows.channel).(func(y, x []T)); ok {
			return pool
		}
	}
	return maxBandOf[T](w).channel
}

// eachChannel distributes n channels.
func (w *window) eachChannel(p *op.Pool, n int, f func(ch int)) {
	const enough = 1 << 14 // minimum number of taps per task
	p.Rows(n, enough/(w.outLen()*min(w.kernelSize(), enough)+1), func(from, to int) {
		for ch := from; ch < to; ch++ {
			f(ch)
		}
	})
}

// lowest is what a window that covers only padding gets: ONNX Runtime's value, the lowest finite number, while the
// specification defines none. It is no element to start a maximum with, as it exceeds -Inf.
func lowest[T poolElement]() T {
	v := 0.0
	switch any(T(0)).(type) {
	case float32:
		v = -math.MaxFloat32
	case float64:
		v = -math.MaxFloat64
	case int8:
		v = math.MinInt8
	}
	return T(v)
}

// leastOf is the element that is the maximum with no other: -Inf for floats.
func leastOf[T poolElement]() T {
	switch any(T(0)).(type) {
	case float32, float64:
		return T(math.Inf(-1))
	}
	return lowest[T]()
}

// maxPoolIndices pools and computes the indices of the maxima in X: of the first ones, counted over the whole tensor,
// in column-major order within a channel if storage_order is set. The index of a window that covers only padding is -1.
func maxPoolIndices[T poolElement](c *op.Call, w *window, x, y []T, places []int64) {
	columns := c.Int("storage_order", 0) != 0
	w.eachChannel(c.Pool, len(y)/w.outLen(), func(ch int) {
		var rows []coveredRow
		for o := range w.outLen() {
			i := ch*w.outLen() + o
			rows = w.rows(rows, o/w.out[w.last()])
			v, at := firstMax(w, part(x, ch, w.inLen()), rows, o%w.out[w.last()])
			if columns && at >= 0 {
				at = w.columnMajor(at)
			}
			y[i], places[i] = v, int64(at)
			if at >= 0 {
				places[i] += int64(ch * w.inLen())
			}
		}
	})
}

// firstMax is the maximum of the window at o of these rows, and its position.
func firstMax[T poolElement](w *window, x []T, rows []coveredRow, o int) (T, int) {
	last := w.last()
	lo, hi := w.inside(last, o)
	first := o*w.stride[last] - w.begin[last]
	top, at := lowest[T](), -1
	for _, r := range rows {
		for k := lo; k < hi; k++ {
			i := r.off + first + k*w.dilation[last]
			// NaN propagates
			if v := x[i]; at < 0 || v > top || v != v && top == top {
				top, at = v, i
			}
		}
	}
	return top, at
}

// columnMajor is the column-major index of element i of a channel.
func (w *window) columnMajor(i int) int {
	step, at := volume(w.in), 0
	for a := w.last(); a >= 0; a-- {
		step /= w.in[a]
		at += i % w.in[a] * step
		i /= w.in[a]
	}
	return at
}
