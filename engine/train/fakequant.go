package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

// fakeQuants give their input the numbers that it will have once the model is quantized (Jacob et al. 2018, section 3).
func fakeQuants() []op.Op {
	return []op.Op{
		{Type: "FakeQuantWeight", Shape: weightShape, Work: weightWork, Run: fakeWeight},
		{Type: "FakeQuantDynamic", Shape: dynamicShape, Work: dynamicWork, InPlace: []int{0}, Run: fakeDynamic},
	}
}

// weightShape: W is quantized as methods dynamic-int8 and weight-int8 do it: symmetric, with a scale for each index of attribute
// axis, or one in all where that is not there; in bits of attribute bits. Each index of the first batch_dims axes
// has scales of its own.
func weightShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	w, err := tensor(in, 0, "W", ir.Float)
	if err != nil {
		return nil, err
	}
	if b := n.Int("bits", 8); b < 2 || b > 8 {
		return nil, fmt.Errorf("attribute bits is %d, want 2 to 8", b)
	}
	_, _, err = channels(n, w)
	return []ir.Spec{w.Spec()}, err
}

// channels are the lanes of which each index has a scale, in each of a batch.
func channels(n *op.Node, w *ir.Array) (batch int, l lanes, err error) {
	dims := n.Int("batch_dims", 0)
	if dims < 0 || dims > int64(len(w.Shape)) {
		return 0, lanes{}, fmt.Errorf("attribute batch_dims is %d, input W has rank %d", dims, len(w.Shape))
	}
	batch = int(op.Product(w.Shape[:dims]))
	if !n.Has("axis") {
		return batch, lanes{1, 1, int(op.Product(w.Shape[dims:]))}, nil
	}
	axis, err := op.Axis(n.Int("axis", 0), len(w.Shape))
	if err == nil && axis < int(dims) {
		err = fmt.Errorf("attribute axis is %d, which is among the first %d of the batch", axis, dims)
	}
	if err != nil {
		return 0, lanes{}, err
	}
	return batch, lanesOf(w.Shape[dims:], axis-int(dims)), nil
}

// weightWork is bits of the largest magnitude, and a scale, for each channel.
func weightWork(n *op.Node, in []*ir.Array, _ int) int64 {
	_, l, err := channels(n, in[0])
	if err != nil {
		return 0
	}
	return 2 * block.Bytes[float32](l.n)
}

func fakeWeight(c *op.Call) error {
	batch, l, err := channels(c.Node, c.In[0])
	if err != nil {
		return err
	}
	w, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	s := block.Scratch{Free: c.Work}
	bits, scales := block.Take[uint32](&s, l.n), block.Take[float32](&s, l.n)
	half, size := int32(1)<<(c.Int("bits", 8)-1)-1, l.rows()*l.n
	for b := 0; b < batch && size > 0; b++ {
		from, to := b*size, (b+1)*size
		if err := l.round(c.Pool, y[from:to], w[from:to], bits, scales, half); err != nil {
			return err
		}
	}
	return nil
}

// round writes the numbers that the codes of w stand for. bits and scales have room for all channels.
func (l lanes) round(p *op.Pool, y, w []float32, bits []uint32, scales []float32, half int32) error {
	clear(bits)
	if l.inner == 1 {
		kernel.ColAbsMaxBits(bits, w)
		if err := symmetric(scales, bits, half); err != nil {
			return err
		}
		p.Rows(l.outer, piece/l.n, func(from, to int) { roundColumns(y, w, scales, from, to, half) })
		return nil
	}
	each := func(f func(k, from, to int)) {
		p.Rows(l.n, piece/l.rows(), func(from, to int) { l.runs(from, to, f) })
	}
	each(func(k, from, to int) { bits[k] = max(bits[k], kernel.AbsMaxBits(w[from:to])) })
	if err := symmetric(scales, bits, half); err != nil {
		return err
	}
	each(func(k, from, to int) { round(y[from:to], w[from:to], scales[k], 0, kernel.Codes{Lo: -half, Hi: half}) })
	return nil
}

// symmetric are the scales of channels with these largest magnitudes, as package quantize fits them. Where it would leave
// the weight alone there is no number to train for.
func symmetric(scales []float32, bits []uint32, half int32) error {
	for i, b := range bits {
		top := math.Float32frombits(b)
		scales[i] = top / float32(half)
		switch {
		case top == 0:
			scales[i] = 1
		case !(scales[i] <= math.MaxFloat32):
			return errors.New("the weights hold numbers that are not finite")
		}
	}
	return nil
}

// codeBlock is how many codes are held between rounding and back.
const codeBlock = 1024

// round writes the numbers that the codes of x stand for.
func round(y, x []float32, scale float32, zero int32, codes kernel.Codes) {
	var room [codeBlock]byte
	for at := 0; at < len(x); at += codeBlock {
		n := min(codeBlock, len(x)-at)
		kernel.Quantize(room[:n], x[at:at+n], scale, zero, codes)
		kernel.Dequantize(y[at:at+n], room[:n], codes.Signed(), scale, zero)
	}
}

// roundColumns is round of the rows from to to-1, with a scale for each column.
func roundColumns(y, x, scales []float32, from, to int, half int32) {
	var room [codeBlock]byte
	cols := len(scales)
	for r := from; r < to; r++ {
		for at := 0; at < cols; at += codeBlock {
			n := min(codeBlock, cols-at)
			i := r*cols + at
			kernel.QuantizeCols(room[:n], x[i:i+n], scales[at:at+n], nil, kernel.Codes{Lo: -half, Hi: half})
			kernel.DequantizeCols(y[i:i+n], room[:n], true, scales[at:at+n], nil)
		}
	}
}

func dynamicShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{x.Spec()}, nil
}

// dynamicWork is the range of each piece.
func dynamicWork(_ *op.Node, in []*ir.Array, _ int) int64 {
	return 2 * block.Bytes[float32](pieces(int(in[0].Elems())))
}

// fakeDynamic is DynamicQuantizeLinear and back.
func fakeDynamic(c *op.Call) error {
	x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	s := block.Scratch{Free: c.Work}
	lo, hi := block.Take[float32](&s, pieces(len(x))), block.Take[float32](&s, pieces(len(x)))
	each := func(f func(i, from, to int)) {
		c.Pool.For(len(lo), func(i int) { f(i, i*piece, min(len(x), (i+1)*piece)) })
	}
	each(func(i, from, to int) { lo[i], hi[i] = kernel.MinMax(x[from:to]) })
	scale, zero := kernel.DynamicScale(kernel.ReduceMin(lo), kernel.ReduceMax(hi))
	each(func(_, from, to int) { round(y[from:to], x[from:to], scale, int32(zero), kernel.Codes{Lo: 0, Hi: 255}) })
	return nil
}
