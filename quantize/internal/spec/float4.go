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

// A blocked is a weight as outer × along × inner elements, whose blocks of size elements along the middle share a scale.
type Float4Encoding struct {
	SmallFloat
	Weight                     *ir.Tensor
	axis                       int
	block, outer, along, inner int64
}

// newBlocked cuts v along the first axis that its readers sum over.
func NewFloat4(t SmallFloat, v *ir.Value, kept []int, size int64) SmallFloatEncoding {
	shape := v.Const.Shape
	for axis, d := range shape {
		if slices.Contains(kept, axis) || d < size || len(shape) < 2 {
			continue
		}
		b := &Float4Encoding{SmallFloat: t, Weight: v.Const, axis: axis, block: size, outer: 1, along: d, inner: 1}
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
	s[b.axis] = CeilDiv(b.along, b.block)
	return s
}

func (b *Float4Encoding) Bytes() int64 {
	return (b.Weight.Elems()+1)/2 + 2*(ir.Spec{Shape: b.scales()}).Elems()
}

func (b *Float4Encoding) Recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "float4",
		In:   []*ir.Tensor{b.Weight},
		Out:  []ir.Spec{{Name: b.Weight.Name, DType: b.Dt, Shape: b.Weight.Shape}, {Name: b.Weight.Name, DType: ir.Float16, Shape: b.scales()}},
		Work: b.bufferElems()*6 + 2*(ir.Spec{Shape: b.scales()}).Elems(),
		Run:  b.run,
	}
}

// window is how many elements are read at a time, at least one row of blocks.
func (b *Float4Encoding) bufferElems() int64 {
	return min(b.Weight.Elems(), max(pass.Block, b.block*b.inner))
}

// rows calls do for each stretch of elements that is a row of blocks: n elements along the middle axis.
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
	k, codes, scales := newFloat4Quantizer(b.Format, b.block, b.inner), &nibbleWriter{w: out[OutQuantized]}, []uint16(nil)
	var from, done, have int64 // of what is held: where it begins, how much of it has codes, and how much there is
	finish := func() error {
		if err := k.finish(); err != nil {
			return &pass.Unfit{Tensor: b.Weight.Name, Reason: err.Error()}
		}
		scales = append(scales, k.scales...)
		return codes.write(k.quantized[:done])
	}
	err := b.rows(func(at, n int64) error {
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
			return &pass.Unfit{Tensor: b.Weight.Name, Reason: err.Error()}
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
	if err := codes.flush(); err != nil {
		return err
	}
	_, err = out[OutScales].Write(kernel.Bytes(scales))
	return err
}

// emit is DequantizeLinear in blocks.
func (b *Float4Encoding) EmitDequantize(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value {
	return g.Insert(at, "DequantizeLinear", []*ir.Value{codes, scales}, ir.IntAttr("axis", int64(b.axis)),
		ir.IntAttr("block_size", b.block), ir.IntAttr("output_dtype", int64(ir.Float)))
}

// restore makes the float weight from codes and scales.
func (b *Float4Encoding) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{b.Weight.Spec}, Work: 16 * b.block * b.inner}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		w := &FloatWriter{W: out[0], Dt: b.Weight.DType}
		packed, codes := make([]byte, b.block*b.inner/2+2), make([]byte, b.block*b.inner+1)
		raw, x := make([]uint16, b.inner), make([]float32, 2*b.inner)
		block, y := int64(0), make([]float32, b.block*b.inner)
		return b.rows(func(at, n int64) error {
			n *= b.inner
			bytes := packed[:(at%2+n+1)/2]
			if err := ir.ReadFull(in[OutQuantized], bytes, at/2); err != nil {
				return err
			}
			kernel.Unpack(codes[:at%2+n], bytes, 4, false)
			if err := ir.ReadFull(in[OutScales], kernel.Bytes(raw), 2*block*b.inner); err != nil {
				return err
			}
			block++
			scale := x[:b.inner]
			kernel.F32FromF16(scale, raw)
			b.Format.Values(y[:n], codes[at%2:][:n], 1)
			for i := range y[:n] {
				y[i] *= scale[int64(i)%b.inner]
			}
			done := y[:n]
			return w.Flush(ctx, &done)
		})
	}
	return r.Derive()[0]
}

// nibbles packs codes of 4 bits, two in a byte over the whole tensor.
type nibbleWriter struct {
	w    io.Writer
	buf  []byte
	held bool // the last byte has its lower half
}

func (p *nibbleWriter) write(codes []byte) error {
	if len(codes) == 0 {
		return nil
	}
	if p.held {
		p.buf[len(p.buf)-1] |= codes[0] << 4
		p.held, codes = false, codes[1:]
	}
	at := len(p.buf)
	p.buf = append(p.buf, make([]byte, kernel.Packed(len(codes), 4))...)
	kernel.Pack(p.buf[at:], codes, 4)
	p.held = len(codes)%2 == 1
	if len(p.buf) < ir.CopyBuffer {
		return nil
	}
	whole := len(p.buf) - int(b2i(p.held))
	_, err := p.w.Write(p.buf[:whole])
	p.buf = append(p.buf[:0], p.buf[whole:]...)
	return err
}

func (p *nibbleWriter) flush() error {
	_, err := p.w.Write(p.buf)
	p.buf, p.held = nil, false
	return err
}

// Check quantizes the weight without output.
func (c *Float4Encoding) Check(ctx context.Context, in io.ReaderAt) error {
	return checkRecipe(ctx, c.Recipe(), in)
}

// Same reports whether e quantizes an equal weight to equal values.
func (c *Float4Encoding) Same(e Encoding) bool {
	o, ok := e.(*Float4Encoding)
	return ok && c.SmallFloat == o.SmallFloat && c.axis == o.axis && c.block == o.block && slices.Equal(c.Weight.Shape, o.Weight.Shape)
}
