package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A FloatWriter converts float32 values to a float type and writes them.
type FloatWriter struct {
	W    io.Writer
	Dt   ir.DType
	half []uint16
}

// Flush writes the numbers of buf, and empties it.
func (w *FloatWriter) Flush(ctx context.Context, buf *[]float32) error {
	x := *buf
	*buf = x[:0]
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.Dt == ir.Float {
		_, err := w.W.Write(kernel.Bytes(x))
		return err
	}
	if cap(w.half) < len(x) {
		w.half = make([]uint16, len(x))
	}
	h := w.half[:len(x)]
	if w.Dt == ir.BFloat16 {
		kernel.BF16FromF32(h, x)
	} else {
		kernel.F16FromF32(h, x)
	}
	_, err := w.W.Write(kernel.Bytes(h))
	return err
}
