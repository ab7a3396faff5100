package spec

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Float4Encoding is a weight of outer × along × inner elements, in which blocks along the middle axis share a scale.
type Float4Encoding struct {
	SmallFloat
	Weight                     *ir.Tensor
	axis                       int
	block, outer, along, inner int64
	limit                      PieceLimit
}

// MinFloat4Block is the smallest block size of 4-bit floats.
const MinFloat4Block = 16

// NewFloat4 divides v into blocks of up to size elements along its first reduction axis of that length; nil if it has
// none. Without padding, size is halved until blocks divide the axis.
func NewFloat4(t SmallFloat, v *ir.Value, kept []int, size int64, padding bool) SmallFloatEncoding {
	shape := v.Const.Shape
	for axis, d := range shape {
		if slices.Contains(kept, axis) || d < size || len(shape) < 2 {
			continue
		}
		block := size
		// OpenVINO does not load blocks that do not divide the axis.
		for ; block >= MinFloat4Block && d%block != 0 && !padding; block /= 2 {
		}
		if block < MinFloat4Block {
			continue
		}
		b := &Float4Encoding{SmallFloat: t, Weight: v.Const, axis: axis, block: block, outer: 1, along: d, inner: 1}
		for i, d := range shape {
			switch {
			case i < axis:
				b.outer *= d
			case i > axis:
				b.inner *= d
			}
		}
		return b
	}
	return nil
}

func (b *Float4Encoding) scales() []int64 {
	s := slices.Clone(b.Weight.Shape)
	s[b.axis] = ceilDiv(b.along, b.block)
	return s
}

// Bytes implements SmallFloatEncoding.
func (b *Float4Encoding) Bytes() int64 {
	return (b.Weight.Elems()+1)/2 + 2*(ir.Spec{Shape: b.scales()}).Elems()
}

// Recipe implements Encoding.
func (b *Float4Encoding) Recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "float4",
		In:   []*ir.Tensor{b.Weight},
		Out: []ir.Spec{{Name: b.Weight.Name, DType: b.Dt, Shape: b.Weight.Shape},
			{Name: b.Weight.Name, DType: ir.Float16, Shape: b.scales()}},
		Work: b.bufferElems()*6 + 2*(ir.Spec{Shape: b.scales()}).Elems(),
		Run:  b.run,
	}
}

// bufferElems is how many elements are read at a time, at least one row of blocks.
func (b *Float4Encoding) bufferElems() int64 {
	return min(b.Weight.Elems(), max(b.limit.Elems(), b.block*b.inner))
}

// rows calls do for each row of blocks: n elements along the middle axis, for each index of the inner axes.
func (b *Float4Encoding) rows(do func(at, n int64) error) error {
	for o := range b.outer {
		for i := int64(0); i < b.along; i += b.block {
			if err := do((o*b.along+i)*b.inner, min(b.block, b.along-i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Float4Encoding) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	f, held := pass.NewFloats(in[0], b.Weight.DType), make([]float32, b.bufferElems())
	k, quantized, scales := newFloat4Quantizer(b.Format, b.block, b.inner), NewPackedWriter(out[OutQuantized], 4),
		[]uint16(nil)
	k.tensor = b.Weight.Name
	var from, done, have int64 // of the elements in memory: the first, how many are quantized, how many there are
	finish := func() error {
		if err := k.finish(); err != nil {
			return err
		}
		// Scales follow all values in the file; at 2 bytes a block they are held.
		scales = append(scales, k.scales...)
		return quantized.Write(k.quantized[:done])
	}
	err := b.rows(func(at, n int64) error {
		// The row of blocks is not in memory as a whole: what is complete is written, and reading goes on at this row.
		if at+n*b.inner > from+have {
			if err := errors.Join(finish(), ctx.Err()); err != nil {
				return err
			}
			from, done, have = at, 0, min(int64(len(held)), b.Weight.Elems()-at)
			if err := f.Read(held[:have], at); err != nil {
				return err
			}
			k.begin(held[:have])
		}
		if err := k.row(int(at-from), int(n)); err != nil {
			return err
		}
		done += n * b.inner
		return nil
	})
	if err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	// At the end: dead blocks are compared with the largest magnitude of the weight.
	if err := k.unfit(b.Weight.Name); err != nil {
		return err
	}
	if err := quantized.Flush(); err != nil {
		return err
	}
	_, err = out[OutScales].Write(kernel.Bytes(scales))
	return err
}

// EmitDequantize inserts a blockwise DequantizeLinear.
func (b *Float4Encoding) EmitDequantize(g *ir.Graph, at *ir.Node, quantized, scales *ir.Value) *ir.Value {
	return g.Insert(at, "DequantizeLinear", []*ir.Value{quantized, scales}, ir.IntAttr("axis", int64(b.axis)),
		ir.IntAttr("block_size", b.block), ir.IntAttr("output_dtype", int64(ir.Float)))
}

// Restore dequantizes the float weight from quantized values and scales.
func (b *Float4Encoding) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{b.Weight.Spec}, Work: 16 * b.block * b.inner}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		w := &FloatWriter{W: out[0], Dt: b.Weight.DType}
		packed, quantized := make([]byte, b.block*b.inner/2+2), make([]byte, b.block*b.inner+1)
		raw, x := make([]uint16, b.inner), make([]float32, 2*b.inner)
		block, y := int64(0), make([]float32, b.block*b.inner)
		return b.rows(func(at, n int64) error {
			n *= b.inner
			// A row of blocks may begin in the upper half of a byte.
			bytes := packed[:(at%2+n+1)/2]
			if err := ir.ReadFull(in[OutQuantized], bytes, at/2); err != nil {
				return err
			}
			kernel.Unpack(quantized[:at%2+n], bytes, 4, false)
			if err := ir.ReadFull(in[OutScales], kernel.Bytes(raw), 2*block*b.inner); err != nil {
				return err
			}
			block++
			scale := x[:b.inner]
			kernel.F32FromF16(scale, raw)
			b.Format.Decode(y[:n], quantized[at%2:][:n], 1)
			for i := range y[:n] {
				y[i] *= scale[int64(i)%b.inner]
			}
			done := y[:n]
			return w.Flush(ctx, &done)
		})
	}
	return r.Derive()[0]
}

// Check quantizes the weight without output.
func (c *Float4Encoding) Check(ctx context.Context, in io.ReaderAt) error {
	return checkRecipe(ctx, c.Recipe(), in)
}

// Same reports whether e quantizes an equal weight to equal values.
func (c *Float4Encoding) Same(e Encoding) bool {
	o, ok := e.(*Float4Encoding)
	return ok && c.SmallFloat == o.SmallFloat && c.axis == o.axis && c.block == o.block &&
		slices.Equal(c.Weight.Shape, o.Weight.Shape)
}
