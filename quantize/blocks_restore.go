package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// restoreBlocks writes the float weight from codes, scales and zero points.
func (c *coding) restoreBlocks(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	r := &blockRestore{coding: c, codes: in[outCodes], scale: make([]float32, c.b.blocks()*c.b.cols)}
	if err := pass.NewFloats(in[outScales], c.b.scaleType()).Read(r.scale, 0); err != nil {
		return err
	}
	w := &floatWriter{w: out, dt: c.t.DType}
	if c.b.padded {
		return c.restoreBits(ctx, r, in[outZeros:], w)
	}
	r.zero = make([]int32, len(r.scale))
	if c.b.hasZeros() {
		if err := r.readZeros(in[outZeros]); err != nil {
			return err
		}
	}
	if c.b.turn {
		return r.turned(ctx, w)
	}
	return r.straight(ctx, w)
}

// A blockRestore makes floats of one weight's codes.
type blockRestore struct {
	*coding
	codes       io.ReaderAt
	scale       []float32
	zero        []int32
	raw, single []byte
}

func (r *blockRestore) signed() bool { return r.b.grid.Low < 0 }

func (r *blockRestore) readZeros(in io.ReaderAt) error {
	bits := int(r.b.dtype.Bits())
	raw, z := make([]byte, kernel.Packed(len(r.zero), bits)), make([]byte, len(r.zero))
	if err := ir.ReadFull(in, raw, 0); err != nil {
		return err
	}
	kernel.Unpack(z, raw, bits, r.signed())
	for i, b := range z {
		r.zero[i] = int32(b)
		if r.signed() {
			r.zero[i] = int32(int8(b))
		}
	}
	return nil
}

// load returns n codes from element at on, which must be the first in a byte.
func (r *blockRestore) load(n, at int64) ([]byte, error) {
	if int64(cap(r.single)) < n {
		r.single, r.raw = make([]byte, n), make([]byte, n)
	}
	q, raw := r.single[:n], r.raw[:kernel.Packed(int(n), r.b.bits)]
	if err := ir.ReadFull(r.codes, raw, at*int64(r.b.bits)/8); err != nil {
		return nil, err
	}
	kernel.Unpack(q, raw, r.b.bits, r.signed())
	return q, nil
}

// straight restores codes that are stored as they lie in the weight, a chunk after the other.
func (r *blockRestore) straight(ctx context.Context, w *floatWriter) error {
	buf := make([]float32, r.chunk())
	total := r.b.rows * r.b.cols
	for at := int64(0); at < total; at += r.chunk() {
		x := buf[:min(r.chunk(), total-at)]
		q, err := r.load(int64(len(x)), at)
		if err != nil {
			return err
		}
		if r.b.standing() {
			r.rows(x, q, at/r.b.cols, 0, r.b.cols)
		} else {
			r.columns(x, q, at/r.b.rows)
		}
		if err := w.flush(ctx, &x); err != nil {
			return err
		}
	}
	return nil
}

// rows restores whole rows of some columns, from a row that starts a block on.
func (r *blockRestore) rows(x []float32, q []byte, row, col, cols int64) {
	block := int64(r.b.grid.Block)
	for at := row / block * r.b.cols; len(x) > 0; at += r.b.cols {
		n := min(int64(len(x)), block*cols)
		kernel.DequantizeCols(x[:n], q[:n], r.signed(), r.scale[at+col:][:cols], r.zero[at+col:][:cols])
		x, q = x[n:], q[n:]
	}
}

// columns restores whole columns that lie, from col on.
func (r *blockRestore) columns(x []float32, q []byte, col int64) {
	for at := col * r.b.blocks(); len(x) > 0; at++ {
		n := min(int64(r.b.grid.Block), r.b.rows-at%r.b.blocks()*int64(r.b.grid.Block))
		kernel.Dequantize(x[:n], q[:n], r.signed(), r.scale[at], r.zero[at])
		x, q = x[n:], q[n:]
	}
}

// turned restores columns that lie in the weight but whose codes stand; those are held as a whole.
func (r *blockRestore) turned(ctx context.Context, w *floatWriter) error {
	rows, cols := r.b.rows, r.b.cols
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
		if err := w.flush(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}
