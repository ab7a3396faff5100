package spec

import (
	"bytes"
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Bytes is the size of the stored tensors.
func (c *PerChannel) Bytes() int64 {
	per := int64(4)
	if !c.Spec.Symmetric {
		per = 5
	}
	return c.Weight.Elems() + per*c.Layout.NumScales()
}

// Restore is the float weight, dequantized from its parts, in its original type and shape.
func (c *PerChannel) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "dequantize", In: parts, Out: []ir.Spec{c.Weight.Spec}, Work: 3 * ir.CopyBuffer}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		a, err := c.readQParams(in)
		if err != nil {
			return err
		}
		return c.dequantize(ctx, in[OutQuantized], out[0], a)
	}
	return r.Derive()[0]
}

func (c *PerChannel) readQParams(in []io.ReaderAt) (*QParams, error) {
	a := newQParams(c.Layout.NumScales(), c.Spec)
	if err := ir.ReadFull(in[OutScales], kernel.Bytes(a.Scale), 0); err != nil || c.Spec.Symmetric {
		return a, err
	}
	z := make([]byte, len(a.ZeroPoint))
	if err := ir.ReadFull(in[OutZeroPoints], z, 0); err != nil {
		return nil, err
	}
	for i, b := range z {
		a.ZeroPoint[i] = int32(int8(b))
		if c.Spec.Unsigned {
			a.ZeroPoint[i] = int32(b)
		}
	}
	return a, nil
}

// dequantize writes the float weight segment by segment.
func (c *PerChannel) dequantize(ctx context.Context, quantized io.ReaderAt, out io.Writer, a *QParams) error {
	buf := make([]float32, 0, c.Layout.bufferElems())
	q := make([]byte, c.Layout.bufferElems())
	w := &FloatWriter{W: out, Dt: c.Weight.DType}
	quantized = c.rowMajor(quantized)
	err := c.Layout.segments(func(r segment) error {
		if len(buf)+int(r.n) > cap(buf) {
			if err := w.Flush(ctx, &buf); err != nil {
				return err
			}
		}
		if err := ir.ReadFull(quantized, q[:r.n], r.at); err != nil {
			return err
		}
		buf = buf[:len(buf)+int(r.n)]
		c.dequantizeSegment(buf[len(buf)-int(r.n):], q[:r.n], r, a)
		return nil
	})
	if err != nil {
		return err
	}
	return w.Flush(ctx, &buf)
}

func (c *PerChannel) dequantizeSegment(dst []float32, q []byte, r segment, a *QParams) {
	if !c.Layout.columnwise() {
		kernel.Dequantize(dst, q, !c.Spec.Unsigned, a.Scale[r.first], a.zeroPointOf(c.Spec, r.first))
		return
	}
	zero := make([]int32, c.Layout.channels)
	for i := range zero {
		zero[i] = a.zeroPointOf(c.Spec, r.first+int64(i))
	}
	kernel.DequantizeCols(dst, q, !c.Spec.Unsigned, a.Scale[r.first:][:c.Layout.channels], zero)
}

// A transposedView reads transposed quantized values in the order of the float weight, a panel of rows at a time.
type transposedView struct {
	r          io.ReaderAt
	rows, cols int64 // of the float weight
	at, n      int64 // the panel in memory, in rows
	piece      int64
	panel, raw []byte
}

func (c *PerChannel) rowMajor(r io.ReaderAt) io.ReaderAt {
	if !c.Transpose {
		return r
	}
	return &transposedView{r: r, rows: c.Shape[0], cols: c.Shape[1], piece: c.Layout.limit.Elems()}
}

// ReadAt reads one segment at a time, as dequantize does: it never fails halfway.
func (u *transposedView) ReadAt(q []byte, off int64) (int, error) {
	done := 0
	for done < len(q) {
		at := off + int64(done)
		if row := at / u.cols; row < u.at || row >= u.at+u.n {
			if err := u.load(row); err != nil {
				return done, err
			}
		}
		done += copy(q[done:], u.panel[at-u.at*u.cols:u.n*u.cols])
	}
	return done, nil
}

// load transposes as many rows from row on as fit into a block.
func (u *transposedView) load(row int64) error {
	n := min(u.rows-row, max(1, u.piece/max(1, u.cols)))
	if u.panel == nil {
		u.panel, u.raw = make([]byte, n*u.cols), make([]byte, n*u.cols)
	}
	for col := range u.cols {
		if err := ir.ReadFull(u.r, u.raw[col*n:][:n], col*u.rows+row); err != nil {
			return err
		}
	}
	kernel.TransposeBytes(u.panel[:n*u.cols], u.raw[:n*u.cols], int(u.cols), int(n))
	u.at, u.n = row, n
	return nil
}

// FakeQuantize is the float weight, and its dequantized values for the given scales and zero points, in the order of
// the weight; zeros is nil for symmetric schemes.
func (c *PerChannel) FakeQuantize(ctx context.Context, weight, scales,
	zeros io.ReaderAt) (was, now []float32, err error) {
	cd := *c
	// In the order of the float weight, whatever the order that is stored.
	cd.Transpose = false
	a, err := cd.readQParams([]io.ReaderAt{nil, scales, zeros})
	if err != nil {
		return nil, nil, err
	}
	r := newSegmentBuffer(cd.Buffers, weight, cd.Weight.DType, cd.Layout, 1)
	defer r.close()
	var quantized, floats bytes.Buffer
	if err := cd.quantizeWith(ctx, r, &quantized, a); err != nil {
		return nil, nil, err
	}
	if err := cd.dequantize(ctx, bytes.NewReader(quantized.Bytes()), &floats, a); err != nil {
		return nil, nil, err
	}
	raw := make([]float32, cd.Weight.Elems())
	return raw, kernel.Words[float32](floats.Bytes()), ir.ReadFull(weight, kernel.Bytes(raw), 0)
}
