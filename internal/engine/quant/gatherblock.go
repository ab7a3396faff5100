package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// gatherBlockOps is ONNX Runtime's GatherBlockQuantized: rows of a table that is quantized blockwise, as floats. Inputs
// data, indices, scales, zero_points.
func gatherBlockOps() []op.Op {
	return []op.Op{{
		Domain: microsoft, Type: "GatherBlockQuantized", Since: 1,
		Shape: gatherBlockShape, Run: gatherBlocks,
	}}
}

// A blockTable is a table that is quantized in blocks along an axis.
type blockTable struct {
	data, scale, zero *ir.Array
	shape             []int64 // of the values: uint8 data may pack several along the last axis
	strides           []int64 // of the scales, by axis; 0 where one scale is broadcast
	gather, quantize  int     // axes
	block             int64
	bits              int // of a value
}

// blockTableOf checks attributes and types.
func blockTableOf(n *op.Node, in []*ir.Array) (*blockTable, error) {
	if err := requireInputs(in, input{0, "data"}, input{1, "indices"}, input{2, "scales"}); err != nil {
		return nil, err
	}
	t := &blockTable{data: in[0], scale: in[2], zero: op.Opt(in, 3), block: n.Int("block_size", 128)}
	if at := in[1].DType; at != ir.Int32 && at != ir.Int64 {
		return nil, fmt.Errorf("input indices is %s, want int32 or int64", in[1])
	}
	if dt := t.scale.DType; t.scale.Kind != ir.Dense || dt != ir.Float && dt != ir.Float16 && dt != ir.BFloat16 {
		return nil, fmt.Errorf("input scales is %s, want float or a 16-bit float", t.scale)
	}
	if err := t.setType(n.Int("bits", 4)); err != nil {
		return nil, err
	}
	var err error
	if t.gather, err = op.Axis(n.Int("gather_axis", 0), len(t.shape)); err != nil {
		return nil, fmt.Errorf("gather_%w", err)
	}
	if t.quantize, err = op.Axis(n.Int("quantize_axis", 1), len(t.shape)); err != nil {
		return nil, fmt.Errorf("quantize_%w", err)
	}
	if err := t.checkBlock(); err != nil {
		return nil, err
	}
	return t, t.setScales()
}

// setType sets the shape and the bits of the values.
func (t *blockTable) setType(bits int64) error {
	t.shape = slices.Clone(t.data.Shape)
	switch dt := t.data.DType; {
	case t.data.Kind != ir.Dense || len(t.shape) == 0:
	case dt == ir.Int4 || dt == ir.Uint4 || t.isFloat():
		t.bits = int(dt.Bits())
		return nil
	case dt == ir.Uint8 && (bits == 2 || bits == 4 || bits == 8):
		t.bits = int(bits)
		t.shape[len(t.shape)-1] *= 8 / bits
		return (ir.Spec{DType: ir.Uint8, Shape: t.shape}).Valid()
	case dt == ir.Uint8:
		return fmt.Errorf("attribute bits is %d, want 2, 4 or 8", bits)
	}
	return fmt.Errorf("input data is %s, want int4, uint4, uint8, or an 8- or 4-bit float", t.data)
}

// isFloat reports whether the values are floats of 8 or 4 bits. Those of 6 bits cross the borders of bytes, so that no
// row of them can be read.
func (t *blockTable) isFloat() bool {
	dt := t.data.DType
	return narrow.IsFloat(dt) && dt != ir.Float8E8M0 && dt.Bits() != 6
}

// packed reports whether values share bytes along the last axis of uint8 data.
func (t *blockTable) packed() bool { return t.data.DType == ir.Uint8 && t.bits < 8 }

func (t *blockTable) checkBlock() error {
	if t.block == 0 && t.isFloat() {
		t.block = max(t.shape[t.quantize], 1)
		return nil
	}
	if t.block < 16 || t.block > 1<<31 || t.block&(t.block-1) != 0 {
		return fmt.Errorf("attribute block_size is %d, want a power of two from 16", t.block)
	}
	if t.data.DType == ir.Uint8 && (t.gather != 0 || t.quantize == 0 || t.quantize != len(t.shape)-1) {
		return fmt.Errorf("gather_axis is %d and quantize_axis is %d, want the first and the last axis of uint8 data",
			t.gather, t.quantize)
	}
	return nil
}

// setScales checks the shapes of scales and zero points.
func (t *blockTable) setScales() error {
	want := slices.Clone(t.shape)
	want[t.quantize] = (want[t.quantize] + t.block - 1) / t.block
	t.strides = op.Strides(t.scale.Shape)
	if len(t.scale.Shape) != len(want) {
		return fmt.Errorf("input scales is %s, want shape %v", t.scale, want)
	}
	for i, d := range t.scale.Shape {
		switch {
		case d == want[i]:
		case d == 1 && t.isFloat() && i != t.quantize:
			t.strides[i] = 0
		default:
			return fmt.Errorf("input scales is %s, want shape %v", t.scale, want)
		}
	}
	if t.zero == nil {
		return nil
	}
	if t.packed() {
		last := len(want) - 1
		want[last] = (want[last]*int64(t.bits) + 7) / 8
	}
	if t.isFloat() || t.zero.DType != t.data.DType || !slices.Equal(t.zero.Shape, want) {
		return fmt.Errorf("input zero_points is %s, want %s of shape %v", t.zero, t.data.DType, want)
	}
	return nil
}

func gatherBlockShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	t, err := blockTableOf(n, in)
	if err != nil {
		return nil, err
	}
	return op.One(t.scale.DType, slices.Concat(t.shape[:t.gather], in[1].Shape, t.shape[t.gather+1:])...)
}

func gatherBlocks(c *op.Call) error {
	t, err := blockTableOf(c.Node, c.In)
	if err != nil {
		return err
	}
	at, err := op.Ints(c.In[1])
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	dim, inner := int(t.shape[t.gather]), int(op.Product(t.shape[t.gather+1:]))
	slices := int(op.Product(t.shape[:t.gather])) * len(at)
	c.Pool.Rows(slices, chunk/inner+1, func(from, to int) {
		for i := from; i < to; i++ {
			index := int(at[i%len(at)])
			if index < 0 {
				index += dim
			}
			if index < 0 || index >= dim { // zeros, as in ONNX Runtime
				clear(c.Out[0].Data[int64(i*inner)*c.Out[0].DType.Bits()/8:][:int64(inner)*c.Out[0].DType.Bits()/8])
				continue
			}
			t.dequantize(c.Out[0], i*inner, (i/len(at)*dim+index)*inner, inner)
		}
	})
	return nil
}

// dequantize writes n values of the table from element from on to y, from element at on.
func (t *blockTable) dequantize(y *ir.Array, at, from, n int) {
	last := int(t.shape[len(t.shape)-1])
	for done := 0; done < n; {
		e := from + done
		size := min(n-done, last-e%last, chunk)
		step := int(t.strides[len(t.strides)-1])
		if t.quantize == len(t.shape)-1 {
			size, step = min(size, int(t.block)-e%last%int(t.block)), 0
		}
		t.run(y, at+done, packedweight.Run{At: e, N: size, Scale: t.scaleOf(e), Step: step})
		done += size
	}
}

// scaleOf is the index of the scale of element e.
func (t *blockTable) scaleOf(e int) int {
	index := 0
	for i := len(t.shape) - 1; i >= 0; i-- {
		place := e % int(t.shape[i])
		e /= int(t.shape[i])
		if i == t.quantize {
			place /= int(t.block)
		}
		index += place * int(t.strides[i])
	}
	return index
}

// run dequantizes elements that share a scale or have contiguous ones.
func (t *blockTable) run(y *ir.Array, at int, r packedweight.Run) {
	var values, scales [chunk]float32
	v, s := values[:r.N], scales[:max(1, r.N*r.Step)]
	t.read(v, r.At)
	readFloats(s, t.scale, r.Scale)
	for i := range v {
		v[i] = (v[i] - t.zeroAt(r.Scale+i*r.Step)) * s[i*r.Step]
	}
	switch y.DType {
	case ir.Float:
		copy(ir.View[float32](y)[at:], v)
	case ir.Float16:
		kernel.F16FromF32(ir.View[uint16](y)[at:][:r.N], v)
	default:
		kernel.BF16FromF32(ir.View[uint16](y)[at:][:r.N], v)
	}
}

// read writes quantized values from element from on to dst.
func (t *blockTable) read(dst []float32, from int) {
	if t.isFloat() {
		var wide [chunk + 1]float32
		odd := from % (8 / t.bits) // of a byte with two values
		narrow.DecodeFloats(wide[:odd+len(dst)], t.data.Data[(from-odd)*t.bits/8:], t.data.DType)
		copy(dst, wide[odd:])
		return
	}
	for i := range dst {
		dst[i] = t.integer(t.data, from+i)
	}
}

// integer is element i of quantized integers of t's type.
func (t *blockTable) integer(a *ir.Array, i int) float32 {
	q := int(narrow.Element(a.Data, i, t.bits))
	if t.data.DType == ir.Int4 && q > 7 {
		q -= 16
	}
	return float32(q)
}

// zeroAt is the zero point of the scale at that index. Rows of packed zero points begin with a byte.
func (t *blockTable) zeroAt(scale int) float32 {
	switch {
	case t.zero != nil && t.packed():
		row := int(t.scale.Shape[len(t.scale.Shape)-1])
		bytes := int(t.zero.Shape[len(t.zero.Shape)-1])
		return float32(narrow.Element(t.zero.Data[scale/row*bytes:], scale%row, t.bits))
	case t.zero != nil:
		return t.integer(t.zero, scale)
	case t.data.DType == ir.Uint8:
		return float32(int(1) << (t.bits - 1))
	}
	return 0
}
