package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/inspection"
)

// sparsity streams t's payload and counts its zeros; nil for sub-byte types and strings.
func sparsity(ctx context.Context, e *ir.Eval, t *ir.Tensor) (*float64, error) {
	size := t.DType.Bits() / 8
	if size == 0 || size > 8 || t.Bytes() == 0 {
		return nil, nil
	}
	r, err := e.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, min(t.Bytes(), ir.CopyBuffer))
	mask := make([]byte, (int64(len(buf))/size+7)/8)
	ones := int64(0)
	for off := int64(0); off < t.Bytes(); off += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), t.Bytes()-off)]
		if err := ir.ReadFull(r, b, off); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		n := int64(len(b)) / size
		ones += int64(kernel.NonZero(mask[:(n+7)/8], b, int(size)))
		if t.DType.IsFloat() {
			ones -= int64(kernel.NegativeZeros(b, int(size)))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	zeros := float64(t.Elems()-ones) / float64(t.Elems())
	zeros = math.Round(zeros*1e6) / 1e6
	return &zeros, nil
}

func larger(a, b inspection.Operator) int {
	return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(b.Op, a.Op))
}

func dim(d ir.Dim) string {
	switch {
	case d.Param != "":
		return d.Param
	case d.N >= 0:
		return fmt.Sprint(d.N)
	}
	return "?"
}
