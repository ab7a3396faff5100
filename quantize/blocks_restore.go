package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
	"github.com/mcompress/mcompress/pass"
)

// restoreBlocks writes the float weight from codes, scales and zero points.
func (c *coding) restoreBlocks(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	b := c.b
	r := &blockRestore{coding: c, codes: in[outCodes], scale: make([]float32, b.blocks()*b.cols)}
	if err := ir.ReadFull(in[outScales], kernel.Bytes(r.scale), 0); err != nil {
		return err
	}
	r.zero = make([]int32, len(r.scale))
	if b.hasZeros() {
		if err := r.readZeros(in[outZeros]); err != nil {
			return err
		}
	}
	w := &floatWriter{w: out, dt: c.t.DType}
	buf := make([]float32, min(pass.Block, b.rows*b.cols))
	if b.turn {
		return r.turned(ctx, w)
	}
	for at := int64(0); at < b.rows*b.cols; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), b.rows*b.cols-at)]
		if err := r.read(part, at); err != nil {
			return err
		}
		if err := w.flush(ctx, &part); err != nil {
			return err
		}
	}
	return nil
}

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
		r.zero[i] = r.integer(b)
	}
	return nil
}

func (r *blockRestore) integer(code byte) int32 {
	if r.signed() {
		return int32(int8(code))
	}
	return int32(code)
}

// load makes single the codes from element at on; at must be the first in a byte.
func (r *blockRestore) load(n int, at int64) error {
	if cap(r.single) < n {
		r.single, r.raw = make([]byte, n), make([]byte, n)
	}
	r.single, r.raw = r.single[:n], r.raw[:kernel.Packed(n, r.b.bits)]
	if err := ir.ReadFull(r.codes, r.raw, at*int64(r.b.bits)/8); err != nil {
		return err
	}
	kernel.Unpack(r.single, r.raw, r.b.bits, r.signed())
	return nil
}

// read restores elements that are stored as they lie in the weight, from at on.
func (r *blockRestore) read(x []float32, at int64) error {
	if err := r.load(len(x), at); err != nil {
		return err
	}
	for i := range x {
		x[i] = r.value(r.single[i], at+int64(i))
	}
	return nil
}

// value is what a code at a place of the stored codes stands for.
func (r *blockRestore) value(code byte, at int64) float32 {
	b, block := r.b, int64(r.b.grid.Block)
	i := at/b.cols/block*b.cols + at%b.cols
	if !b.standing() {
		i = at/b.rows*b.blocks() + at%b.rows/block
	}
	return float32(r.integer(code)-r.zero[i]) * r.scale[i]
}

// turned restores a matrix whose codes are stored the other way round. They are held as a whole.
func (r *blockRestore) turned(ctx context.Context, w *floatWriter) error {
	rows, cols := r.shape[0], r.shape[1]
	if err := r.load(int(rows*cols), 0); err != nil {
		return err
	}
	n := max(1, pass.Block/max(1, cols))
	for row := int64(0); row < rows; row += n {
		count := min(n, rows-row)
		x := make([]float32, count*cols)
		for col := range cols {
			for i := range count {
				at := col*rows + row + i
				x[i*cols+col] = r.value(r.single[at], at)
			}
		}
		if err := w.flush(ctx, &x); err != nil {
			return err
		}
	}
	return nil
}
