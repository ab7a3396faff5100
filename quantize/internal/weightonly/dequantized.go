package weightonly

import (
	"context"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// A dequantizedConstant is the constant of a quantized matrix, row-major. Values are computed when they are read, some
// lines at a time: rows, or columns of a transposed matrix.
type dequantizedConstant struct {
	*matrix
	workers int
}

// dequantizedAtOnce is the number of elements that a worker computes at a time.
const dequantizedAtOnce = 64 << 10

// dequantized is the constant of the quantized matrix.
func (l *matrix) dequantized(workers int) *ir.Tensor {
	return &ir.Tensor{Spec: l.weight.Const.Spec, Source: ir.Span{R: &dequantizedConstant{l, workers}}}
}

// ReadAt reads within the constant.
func (d *dequantizedConstant) ReadAt(p []byte, off int64) (int, error) {
	lines, length := d.k, d.n
	if d.transposed {
		lines, length = d.n, d.k
	}
	size := int64(length) * d.weight.Const.DType.Bits() / 8 // of a line
	step := max(1, dequantizedAtOnce/length)
	if !d.transposed {
		// Whole blocks, as one scale is loaded for a block of rows.
		step = (step + d.spec.Block - 1) / d.spec.Block * d.spec.Block
	}
	end := off + int64(len(p))
	from, to := int(off/size)/step, (int((end+size-1)/size)+step-1)/step
	return len(p), pass.Parallel(context.Background(), d.workers, to-from, func(_ context.Context, i int) error {
		first := (from + i) * step
		b, err := d.lines(first, min(step, lines-first))
		if err != nil {
			return err
		}
		if at := int64(first) * size; at < off {
			copy(p, b[off-at:])
		} else {
			copy(p[at-off:], b)
		}
		return nil
	})
}

// lines is the payload of some lines from first on.
func (d *dequantizedConstant) lines(first, count int) ([]byte, error) {
	k, n, row, col := count, d.n, first, 0
	if d.transposed {
		k, n, row, col = d.k, count, 0, first
	}
	c := solve.NewQuantized(k, n, d.spec)
	if err := d.load(c, row, col); err != nil {
		return nil, err
	}
	w := make([]float32, k*n)
	c.Weights(gemm.CallerPool{}, w)
	return d.constant(w, k, n), nil
}

// constant is the payload of the constant for w, k×n, all of the matrix or some of its lines.
func (l *matrix) constant(w []float32, k, n int) []byte {
	if l.transposed {
		transposedRows := make([]float32, len(w))
		kernel.Transpose(transposedRows, w, k, n)
		w = transposedRows
	}
	if l.weight.Const.DType == ir.Float16 {
		half := make([]uint16, len(w))
		kernel.F16FromF32(half, w)
		return kernel.Bytes(half)
	}
	return kernel.Bytes(w)
}
