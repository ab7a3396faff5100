package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Restore is the float weight, dequantized from its parts.
func (c *Blockwise) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "dequantize", In: parts, Out: []ir.Spec{c.Weight.Spec}, Work: 3 * ir.CopyBuffer}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		return c.dequantize(ctx, in, out[0])
	}
	return r.Derive()[0]
}

func (c *Blockwise) dequantize(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	r := &blockDequantizer{Blockwise: c, quantized: in[OutQuantized], scale: make([]float32, c.Layout.NumBlocks()*c.Layout.Cols)}
	if err := pass.NewFloats(in[OutScales], c.Layout.scaleDType()).Read(r.scale, 0); err != nil {
		return err
	}
	w := &FloatWriter{W: out, Dt: c.Weight.DType}
	if c.Layout.ForNBits {
		return c.restoreNBits(ctx, r, in[OutZeroPoints:], w)
	}
	r.zeroPoint = make([]int32, len(r.scale))
	if c.Layout.HasZeroPoints() {
		if err := r.readZeroPoints(in[OutZeroPoints]); err != nil {
			return err
		}
	} else {
		for i := range r.zeroPoint {
			r.zeroPoint[i] = c.Layout.ImpliedZeroPoint()
		}
	}
	switch {
	case !c.Layout.Transposed:
		return r.sameOrder(ctx, w)
	case c.Layout.RowMajor():
		return r.columnsOfRows(ctx, w)
	}
	return r.rowsOfColumns(ctx, w)
}

// A blockDequantizer dequantizes one weight.
type blockDequantizer struct {
	*Blockwise
	quantized     io.ReaderAt
	scale         []float32
	zeroPoint     []int32
	raw, unpacked []byte
}

func (r *blockDequantizer) signed() bool { return r.Layout.Spec.Low < 0 }

func (r *blockDequantizer) readZeroPoints(in io.ReaderAt) error {
	bits := r.Layout.zeroPointBits()
	raw, z := make([]byte, kernel.Packed(len(r.zeroPoint), bits)), make([]byte, len(r.zeroPoint))
	if err := ir.ReadFull(in, raw, 0); err != nil {
		return err
	}
	kernel.Unpack(z, raw, bits, r.signed())
	for i, b := range z {
		r.zeroPoint[i] = int32(b)
		if r.signed() {
			r.zeroPoint[i] = int32(int8(b))
		}
	}
	return nil
}

// load returns n quantized values from element at on, which must be the first one in a byte.
func (r *blockDequantizer) load(n, at int64) ([]byte, error) {
	if int64(cap(r.unpacked)) < n {
		r.unpacked, r.raw = make([]byte, n), make([]byte, n)
	}
	q, raw := r.unpacked[:n], r.raw[:kernel.Packed(int(n), r.Layout.Bits)]
	if err := ir.ReadFull(r.quantized, raw, at*int64(r.Layout.Bits)/8); err != nil {
		return nil, err
	}
	kernel.Unpack(q, raw, r.Layout.Bits, r.signed())
	return q, nil
}

// sameOrder dequantizes in chunks where the quantized weight has the order of the weight.
func (r *blockDequantizer) sameOrder(ctx context.Context, w *FloatWriter) error {
	buf := make([]float32, r.chunk())
	total := r.Layout.Rows * r.Layout.Cols
	for at := int64(0); at < total; at += r.chunk() {
		x := buf[:min(r.chunk(), total-at)]
		q, err := r.load(int64(len(x)), at)
		if err != nil {
			return err
		}
		if r.Layout.RowMajor() {
			r.rows(x, q, at/r.Layout.Cols, 0, r.Layout.Cols)
		} else {
			r.columns(x, q, at/r.Layout.Rows)
		}
		if err := w.Flush(ctx, &x); err != nil {
			return err
		}
	}
	return nil
}

// rows dequantizes whole rows of some columns, from the first row of a block on.
func (r *blockDequantizer) rows(x []float32, q []byte, row, col, cols int64) {
	block := int64(r.Layout.Spec.Block)
	for at := row / block * r.Layout.Cols; len(x) > 0; at += r.Layout.Cols {
		n := min(int64(len(x)), block*cols)
		kernel.DequantizeCols(x[:n], q[:n], r.signed(), r.scale[at+col:][:cols], r.zeroPoint[at+col:][:cols])
		x, q = x[n:], q[n:]
	}
}

// columns dequantizes whole contiguous columns, from col on.
func (r *blockDequantizer) columns(x []float32, q []byte, col int64) {
	for at := col * r.Layout.NumBlocks(); len(x) > 0; at++ {
		n := min(int64(r.Layout.Spec.Block), r.Layout.Rows-at%r.Layout.NumBlocks()*int64(r.Layout.Spec.Block))
		kernel.Dequantize(x[:n], q[:n], r.signed(), r.scale[at], r.zeroPoint[at])
		x, q = x[n:], q[n:]
	}
}

// columnsOfRows dequantizes a row-major quantized weight into a column-major weight. It holds all quantized values.
func (r *blockDequantizer) columnsOfRows(ctx context.Context, w *FloatWriter) error {
	rows, cols := r.Layout.Rows, r.Layout.Cols
	q, err := r.load(rows*cols, 0)
	if err != nil {
		return err
	}
	wide := min(cols, max(1, pass.Block/max(1, rows)))
	x, turned, part := make([]float32, rows*wide), make([]float32, rows*wide), make([]byte, rows*wide)
	for col := int64(0); col < cols; col += wide {
		n := min(wide, cols-col)
		for row := range rows {
			copy(part[row*n:][:n], q[row*cols+col:])
		}
		r.rows(x[:rows*n], part[:rows*n], 0, col, n)
		out := turned[:rows*n]
		kernel.Transpose(out, x[:rows*n], int(rows), int(n))
		if err := w.Flush(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}

// rowsOfColumns dequantizes a column-major quantized weight into a row-major weight. It holds all quantized values.
func (r *blockDequantizer) rowsOfColumns(ctx context.Context, w *FloatWriter) error {
	rows, cols, block := r.Layout.Rows, r.Layout.Cols, int64(r.Layout.Spec.Block)
	q, err := r.load(rows*cols, 0)
	if err != nil {
		return err
	}
	tall := min(rows, max(1, pass.Block/cols/block)*block)
	x, turned := make([]float32, tall*cols), make([]float32, tall*cols)
	for row := int64(0); row < rows; row += tall {
		n := min(tall, rows-row)
		for col := range cols {
			at, to := col*r.Layout.NumBlocks()+row/block, x[col*n:][:n]
			for from := q[col*rows+row:][:n]; len(from) > 0; at++ {
				m := min(block, int64(len(from)))
				kernel.Dequantize(to[:m], from[:m], r.signed(), r.scale[at], r.zeroPoint[at])
				to, from = to[m:], from[m:]
			}
		}
		out := turned[:n*cols]
		kernel.Transpose(out, x[:n*cols], int(cols), int(n))
		if err := w.Flush(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}
