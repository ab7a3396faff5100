package palette

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Restore is the float weight: entries times scales.
func (e *encoding) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: e.restoreName(), In: parts, Out: []ir.Spec{e.weight.Spec},
		Work: 12*e.chunk() + e.Groups*e.stored()*4}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		entries := make([]float32, e.Groups*e.stored())
		if err := ir.ReadFull(in[outCodebook], kernel.Bytes(entries), 0); err != nil {
			return err
		}
		w, n := &spec.FloatWriter{W: out[0], Dt: e.weight.DType}, e.chunk()
		indices, x := make([]byte, n), make([]float32, n)
		for first := int64(0); first < e.Elems; first += n {
			count := min(n, e.padded()-first)
			if err := e.readIndices(in[outIndices], indices[:count/e.entry()], first/e.entry()); err != nil {
				return err
			}
			y := x[:min(count, e.Elems-first)]
			e.lookUp(y, indices, entries, first)
			if e.Block > 0 {
				if err := e.scale(in[outScales], y, first); err != nil {
					return err
				}
			}
			if err := w.Flush(ctx, &y); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}

// readIndices reads indices from first on, one in a byte.
func (e *encoding) readIndices(r io.ReaderAt, indices []byte, first int64) error {
	bits := e.bits()
	packed := make([]byte, (int64(len(indices))*bits+7)/8)
	if err := ir.ReadFull(r, packed, first*bits/8); err != nil {
		return err
	}
	if bits != 6 {
		kernel.Unpack(indices, packed, int(bits), false)
		return nil
	}
	for i := range indices {
		// Four indices in three bytes, the lowest bits first.
		at := i / 4 * 3
		v := uint32(packed[at]) | uint32(packed[at+1])<<8 | uint32(packed[at+2])<<16
		indices[i] = byte(v >> (i % 4 * 6) & 63)
	}
	return nil
}

// lookUp writes the entries of indices, those of elements from first on, to y.
func (e *encoding) lookUp(y []float32, indices []byte, entries []float32, first int64) {
	for i := int64(0); i < int64(len(y)); {
		g, end := e.group(first + i)
		book := entries[g*e.stored():][:e.stored()]
		for end = min(end-first, int64(len(y))); i < end; i++ {
			y[i] = book[int64(indices[i/e.entry()])*e.entry()+i%e.entry()]
		}
	}
}

// scale multiplies the blocks of y, elements from first on, by their scales.
func (e *encoding) scale(r io.ReaderAt, y []float32, first int64) error {
	stored := make([]byte, ceilDiv(int64(len(y)), e.Block))
	if err := ir.ReadFull(r, stored, first/e.Block); err != nil {
		return err
	}
	s := scaleTable()
	for i := range y {
		y[i] *= s.of[stored[int64(i)/e.Block]]
	}
	return nil
}
