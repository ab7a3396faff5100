package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// packColumns packs columns of rows codes, each filled up to a number of codes that unit divides and that takes whole bytes.
// It may write over q.
func (b *blocking) packColumns(q []byte, rows, unit int64) []byte {
	wide := ceil(rows, unit) * unit
	if wide == rows {
		return b.pack(q, q, b.bits)
	}
	column, n := make([]byte, wide), int64(kernel.Packed(int(wide), b.bits))
	out := make([]byte, int64(len(q))/rows*n)
	for at := out; len(q) > 0; q, at = q[rows:], at[n:] {
		copy(column, q[:rows])
		kernel.Pack(at[:n], column, b.bits)
	}
	return out
}

// unpackColumns is its inverse.
func (b *blocking) unpackColumns(packed []byte, rows, unit int64) []byte {
	wide := ceil(rows, unit) * unit
	n := int64(kernel.Packed(int(wide), b.bits))
	column, q := make([]byte, wide), make([]byte, 0, b.cols*rows)
	for ; len(packed) > 0; packed = packed[n:] {
		kernel.Unpack(column, packed[:n], b.bits, false)
		q = append(q, column[:rows]...)
	}
	return q
}

// restoreBits restores the weight whose codes r holds as MatMulNBits reads them. Codes are held as a whole, a byte each.
func (c *coding) restoreBits(ctx context.Context, r *blockRestore, zeros []io.ReaderAt, w *floatWriter) error {
	b := c.b
	packed := make([]byte, ir.Spec{DType: b.dtype, Shape: b.codeShape(c.shape)}.Bytes())
	if err := ir.ReadFull(r.codes, packed, 0); err != nil {
		return err
	}
	v := &bitValues{blocking: b, codes: b.unpackColumns(packed, b.rows, int64(b.grid.Block)), scale: r.scale}
	if err := v.readZeros(zeros); err != nil {
		return err
	}
	if b.lying {
		return v.columns(ctx, w)
	}
	return v.rowsOf(ctx, w)
}

// bitValues are the codes of a matrix column by column, and what they stand for.
type bitValues struct {
	*blocking
	codes       []byte
	scale, zero []float32
}

// readZeros reads zero points as numbers; those that are not stored are the middle of the codes.
func (v *bitValues) readZeros(in []io.ReaderAt) error {
	v.zero = make([]float32, len(v.scale))
	if !v.hasZeros() {
		for i := range v.zero {
			v.zero[i] = float32(int(1) << (v.bits - 1))
		}
		return nil
	}
	if v.real {
		return pass.NewFloats(in[0], v.scaleType()).Read(v.zero, 0)
	}
	dt, shape := v.zeros()
	packed := make([]byte, ir.Spec{DType: dt, Shape: shape}.Bytes())
	if err := ir.ReadFull(in[0], packed, 0); err != nil {
		return err
	}
	for i, z := range v.unpackColumns(packed, v.blocks(), int64(8/v.bits)) {
		v.zero[i] = float32(z)
	}
	return nil
}

// part is rows of one column, from row on.
func (v *bitValues) part(x []float32, row, col int64) {
	block := int64(v.grid.Block)
	for i, q := range v.codes[col*v.rows+row:][:len(x)] {
		at := col*v.blocks() + (row+int64(i))/block
		x[i] = (float32(q) - v.zero[at]) * v.scale[at]
	}
}

func (v *bitValues) columns(ctx context.Context, w *floatWriter) error {
	x := make([]float32, v.rows)
	for col := range v.cols {
		v.part(x, 0, col)
		if err := w.flush(ctx, &x); err != nil {
			return err
		}
		x = x[:v.rows]
	}
	return nil
}

func (v *bitValues) rowsOf(ctx context.Context, w *floatWriter) error {
	tall := min(v.rows, max(1, pass.Block/v.cols))
	x, turned := make([]float32, tall*v.cols), make([]float32, tall*v.cols)
	for row := int64(0); row < v.rows; row += tall {
		n := min(tall, v.rows-row)
		for col := range v.cols {
			v.part(x[col*n:][:n], row, col)
		}
		out := turned[:n*v.cols]
		kernel.Transpose(out, x[:n*v.cols], int(v.cols), int(n))
		if err := w.flush(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}
