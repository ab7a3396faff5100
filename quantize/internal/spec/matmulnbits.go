package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// packColumns packs columns of rows values, each padded to a multiple of unit values that fills whole bytes. It may overwrite q.
func (b *BlockLayout) packColumns(q []byte, rows, unit int64) []byte {
	wide := ceilDiv(rows, unit) * unit
	if wide == rows {
		return b.pack(q, q, b.Bits)
	}
	column, n := make([]byte, wide), int64(kernel.Packed(int(wide), b.Bits))
	out := make([]byte, int64(len(q))/rows*n)
	for at := out; len(q) > 0; q, at = q[rows:], at[n:] {
		copy(column, q[:rows])
		kernel.Pack(at[:n], column, b.Bits)
	}
	return out
}

// unpackColumns is its inverse.
func (b *BlockLayout) unpackColumns(packed []byte, rows, unit int64) []byte {
	wide := ceilDiv(rows, unit) * unit
	n := int64(kernel.Packed(int(wide), b.Bits))
	column, q := make([]byte, wide), make([]byte, 0, b.Cols*rows)
	for ; len(packed) > 0; packed = packed[n:] {
		kernel.Unpack(column, packed[:n], b.Bits, false)
		q = append(q, column[:rows]...)
	}
	return q
}

// restoreNBits dequantizes the weight from the layout of MatMulNBits. It holds all quantized values, one in a byte.
func (c *Blockwise) restoreNBits(ctx context.Context, r *blockDequantizer, zeros []io.ReaderAt, w *FloatWriter) error {
	b := c.Layout
	packed := make([]byte, ir.Spec{DType: b.DType, Shape: b.quantizedShape(c.Shape)}.Bytes())
	if err := ir.ReadFull(r.quantized, packed, 0); err != nil {
		return err
	}
	v := &nbitsDequantizer{BlockLayout: b, quantized: b.unpackColumns(packed, b.Rows, int64(b.Spec.Block)), scale: r.scale}
	if err := v.readZeroPoints(zeros); err != nil {
		return err
	}
	if b.ColumnMajor {
		return v.columns(ctx, w)
	}
	return v.rows(ctx, w)
}

// An nbitsDequantizer holds the quantized values of a matrix, column by column, with their scales and zero points.
type nbitsDequantizer struct {
	*BlockLayout
	quantized        []byte
	scale, zeroPoint []float32
}

// readZeroPoints reads zero points as numbers; those that are not stored are the middle of the levels.
func (v *nbitsDequantizer) readZeroPoints(in []io.ReaderAt) error {
	v.zeroPoint = make([]float32, len(v.scale))
	if !v.HasZeroPoints() {
		for i := range v.zeroPoint {
			v.zeroPoint[i] = float32(int(1) << (v.Bits - 1))
		}
		return nil
	}
	if v.FloatZeroPoints {
		return pass.NewFloats(in[0], v.scaleDType()).Read(v.zeroPoint, 0)
	}
	dt, shape := v.zeroPointSpec()
	packed := make([]byte, ir.Spec{DType: dt, Shape: shape}.Bytes())
	if err := ir.ReadFull(in[0], packed, 0); err != nil {
		return err
	}
	for i, z := range v.unpackColumns(packed, v.NumBlocks(), int64(8/v.Bits)) {
		v.zeroPoint[i] = float32(z)
	}
	return nil
}

// dequantize dequantizes rows of one column, from row on.
func (v *nbitsDequantizer) dequantize(x []float32, row, col int64) {
	block := int64(v.Spec.Block)
	for i, q := range v.quantized[col*v.Rows+row:][:len(x)] {
		at := col*v.NumBlocks() + (row+int64(i))/block
		x[i] = (float32(q) - v.zeroPoint[at]) * v.scale[at]
	}
}

func (v *nbitsDequantizer) columns(ctx context.Context, w *FloatWriter) error {
	x := make([]float32, v.Rows)
	for col := range v.Cols {
		v.dequantize(x, 0, col)
		if err := w.Flush(ctx, &x); err != nil {
			return err
		}
		x = x[:v.Rows]
	}
	return nil
}

func (v *nbitsDequantizer) rows(ctx context.Context, w *FloatWriter) error {
	tall := min(v.Rows, max(1, pass.Block/v.Cols))
	x, turned := make([]float32, tall*v.Cols), make([]float32, tall*v.Cols)
	for row := int64(0); row < v.Rows; row += tall {
		n := min(tall, v.Rows-row)
		for col := range v.Cols {
			v.dequantize(x[col*n:][:n], row, col)
		}
		out := turned[:n*v.Cols]
		kernel.Transpose(out, x[:n*v.Cols], int(v.Cols), int(n))
		if err := w.Flush(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}
