package conv

import (
	"math"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// maxPools are MaxPool of all versions: Indices came with 8, dilations and ceil_mode with 10, integers
// with 12, and each is what its absence was before.
func maxPools() []op.Op {
	return wide(op.Op{Type: "MaxPool", Since: 1, Shape: maxPoolShape, Run: maxPoolTypes().run})
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

// shape is the shape of an operator whose window is all attributes.
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
	places := floorPlaces
	if n.Bool("ceil_mode", false) {
		places = ceilPlaces
	}
	return windowOf(n, lengths, nil, places)
}

// pooled are the element types that pools compute in.
type pooled interface {
	float32 | float64 | int8 | uint8
}

func maxPool[T pooled](c *op.Call) error {
	x, y := ir.View[T](c.In[0]), ir.View[T](c.Out[0])
	w, err := poolWindow(c.Node, c.In[0].Shape[2:])
	if err != nil || len(y) == 0 {
		return err
	}
	if len(c.Out) > 1 && c.Out[1] != nil {
		maxPlaces(c, w, x, y, ir.View[int64](c.Out[1]))
		return nil
	}
	w.eachChannel(c.Pool, len(y)/w.outLen(), func(ch int) {
		maxOver(w, part(y, ch, w.outLen()), part(x, ch, w.inLen()))
	})
	return nil
}

// part is the i-th of the equal parts of xs that have n elements.
func part[T any](xs []T, i, n int) []T { return xs[i*n : (i+1)*n : (i+1)*n] }

// eachChannel shares n channels out.
func (w *window) eachChannel(p *op.Pool, n int, f func(ch int)) {
	const enough = 1 << 14 // taps to make a piece of work of
	p.Rows(n, enough/(w.outLen()*min(w.taken(), enough)+1), func(from, to int) {
		for ch := from; ch < to; ch++ {
			f(ch)
		}
	})
}

// maxOver pools one channel: first down the rows of a window, which lie side by side, and then along
// what came of that. A window that lies in the padding gets the lowest number, a NaN stays one.
func maxOver[T pooled](w *window, y, x []T) {
	var rows []covered
	last := w.last()
	line := make([]T, w.in[last])
	for o := range len(y) / w.out[last] {
		rows = w.rows(rows, o)
		row := part(y, o, w.out[last])
		fill(row, lowest[T]())
		if len(rows) == 0 {
			continue
		}
		copy(line, x[rows[0].off:])
		for _, r := range rows[1:] {
			raise(line, x[r.off:])
		}
		for k := range w.kernel[last] {
			lo, hi, from := w.taps(last, k)
			raiseEach(row[lo:hi], line, from, w.stride[last])
		}
	}
}

func fill[T any](xs []T, v T) {
	for i := range xs {
		xs[i] = v
	}
}

// raise makes each y the larger one of itself and x.
func raise[T pooled](y, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = max(y[i], v)
	}
}

func raiseEach[T pooled](y, x []T, from, stride int) {
	if len(y) == 0 {
		return
	}
	if stride == 1 {
		raise(y, x[from:])
		return
	}
	for i := range y {
		y[i] = max(y[i], x[from+i*stride])
	}
}

func lowest[T pooled]() T {
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

// maxPlaces pools and tells where in X the largest elements are: the first ones, counted over the
// whole tensor, in column-major order within a channel if storage_order says so. A window that
// lies in the padding has none, -1.
func maxPlaces[T pooled](c *op.Call, w *window, x, y []T, places []int64) {
	columns := c.Int("storage_order", 0) != 0
	w.eachChannel(c.Pool, len(y)/w.outLen(), func(ch int) {
		var rows []covered
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

// firstMax is the largest element of the window at o of these rows, and its place.
func firstMax[T pooled](w *window, x []T, rows []covered, o int) (T, int) {
	last := w.last()
	lo, hi := w.inside(last, o)
	first := o*w.stride[last] - w.begin[last]
	top, at := lowest[T](), -1
	for _, r := range rows {
		for k := lo; k < hi; k++ {
			i := r.off + first + k*w.dilation[last]
			// A NaN is taken and then stays.
			if v := x[i]; at < 0 || v > top || v != v && top == top {
				top, at = v, i
			}
		}
	}
	return top, at
}

// columnMajor is the place of element i of a channel if its first axis were the one that lies together.
func (w *window) columnMajor(i int) int {
	step, at := volume(w.in), 0
	for a := w.last(); a >= 0; a-- {
		step /= w.in[a]
		at += i % w.in[a] * step
		i /= w.in[a]
	}
	return at
}
