package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// restoreBlocks writes the float weight from codes, scales and zero points.
func (c *Encoding) restoreBlocks(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	r := &blockDequantizer{Encoding: c, quantized: in[OutQuantized], scale: make([]float32, c.Blocks.NumBlocks()*c.Blocks.Cols)}
	if err := pass.NewFloats(in[OutScales], c.Blocks.scaleDType()).Read(r.scale, 0); err != nil {
		return err
	}
	w := &FloatWriter{W: out, Dt: c.Weight.DType}
	if c.Blocks.ForNBits {
		return c.restoreNBits(ctx, r, in[OutZeroPoints:], w)
	}
	r.zeroPoint = make([]int32, len(r.scale))
	if c.Blocks.HasZeroPoints() {
		if err := r.readZeroPoints(in[OutZeroPoints]); err != nil {
			return err
		}
	}
	if c.Blocks.Transposed {
		return r.otherOrder(ctx, w)
	}
	return r.sameOrder(ctx, w)
}

// A blockRestore makes floats of one weight's codes.
type blockDequantizer struct {
	*Encoding
	quantized     io.ReaderAt
	scale         []float32
	zeroPoint     []int32
	raw, unpacked []byte
}

func (r *blockDequantizer) signed() bool { return r.Blocks.Spec.Low < 0 }

func (r *blockDequantizer) readZeroPoints(in io.ReaderAt) error {
	bits := int(r.Blocks.DType.Bits())
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

// load returns n codes from element at on, which must be the first in a byte.
func (r *blockDequantizer) load(n, at int64) ([]byte, error) {
	if int64(cap(r.unpacked)) < n {
		r.unpacked, r.raw = make([]byte, n), make([]byte, n)
	}
	q, raw := r.unpacked[:n], r.raw[:kernel.Packed(int(n), r.Blocks.Bits)]
	if err := ir.ReadFull(r.quantized, raw, at*int64(r.Blocks.Bits)/8); err != nil {
		return nil, err
	}
	kernel.Unpack(q, raw, r.Blocks.Bits, r.signed())
	return q, nil
}

// straight restores codes that are stored as they lie in the weight, a chunk after the other.
func (r *blockDequantizer) sameOrder(ctx context.Context, w *FloatWriter) error {
	buf := make([]float32, r.chunk())
	total := r.Blocks.Rows * r.Blocks.Cols
	for at := int64(0); at < total; at += r.chunk() {
		x := buf[:min(r.chunk(), total-at)]
		q, err := r.load(int64(len(x)), at)
		if err != nil {
			return err
		}
		if r.Blocks.RowMajor() {
			r.rows(x, q, at/r.Blocks.Cols, 0, r.Blocks.Cols)
		} else {
			r.columns(x, q, at/r.Blocks.Rows)
		}
		if err := w.Flush(ctx, &x); err != nil {
			return err
		}
	}
	return nil
}

// rows restores whole rows of some columns, from a row that starts a block on.
func (r *blockDequantizer) rows(x []float32, q []byte, row, col, cols int64) {
	block := int64(r.Blocks.Spec.Block)
	for at := row / block * r.Blocks.Cols; len(x) > 0; at += r.Blocks.Cols {
		n := min(int64(len(x)), block*cols)
		kernel.DequantizeCols(x[:n], q[:n], r.signed(), r.scale[at+col:][:cols], r.zeroPoint[at+col:][:cols])
		x, q = x[n:], q[n:]
	}
}

// columns restores whole columns that lie, from col on.
func (r *blockDequantizer) columns(x []float32, q []byte, col int64) {
	for at := col * r.Blocks.NumBlocks(); len(x) > 0; at++ {
		n := min(int64(r.Blocks.Spec.Block), r.Blocks.Rows-at%r.Blocks.NumBlocks()*int64(r.Blocks.Spec.Block))
		kernel.Dequantize(x[:n], q[:n], r.signed(), r.scale[at], r.zeroPoint[at])
		x, q = x[n:], q[n:]
	}
}

// turned restores columns that lie in the weight but whose codes stand; those are held as a whole.
func (r *blockDequantizer) otherOrder(ctx context.Context, w *FloatWriter) error {
	rows, cols := r.Blocks.Rows, r.Blocks.Cols
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
