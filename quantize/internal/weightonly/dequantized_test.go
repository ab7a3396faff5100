package weightonly

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate/layerwise"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// Any range of the constant of a quantized matrix is that of the dequantized matrix, in either order and type.
func TestReadDequantized(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, transposed := range []bool{false, true} {
		for _, dt := range []ir.DType{ir.Float, ir.Float16} {
			l, want := quantizedMatrix(t, r, transposed, dt)
			constant := l.dequantized(2).Source.(ir.Span).R
			for range 50 {
				from := r.IntN(len(want))
				got := make([]byte, r.IntN(len(want)-from+1))
				if n, err := constant.ReadAt(got, int64(from)); n != len(got) || err != nil {
					t.Fatal(n, err)
				}
				if !bytes.Equal(got, want[from:from+len(got)]) {
					t.Fatalf("transposed %v, %s: %d bytes from %d on differ", transposed, dt, len(got), from)
				}
			}
		}
	}
}

// quantizedMatrix is a matrix of several pieces with random quantized values, and its constant.
func quantizedMatrix(t *testing.T, r *rand.Rand, transposed bool, dt ir.DType) (*matrix, []byte) {
	t.Helper()
	weight := &ir.Value{Const: &ir.Tensor{Spec: ir.Spec{DType: dt}}}
	l := &matrix{weight: weight, k: 700, n: 501, transposed: transposed, spec: solve.Spec{Low: -8, High: 7, Block: 32}}
	c := solve.NewQuantized(l.k, l.n, l.spec)
	for i := range c.Values {
		c.Values[i] = byte(r.IntN(16) - 8)
	}
	zeros := make([]byte, len(c.Zero))
	for i := range c.Scale {
		c.Scale[i], c.Zero[i] = r.Float32(), int32(r.IntN(16)-8)
		zeros[i] = byte(c.Zero[i])
	}
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	var err error
	if l.quantized, err = layerwise.Keep(t.Context(), eval, "w", c.Values, kernel.Bytes(c.Scale), zeros); err != nil {
		t.Fatal(err)
	}
	w := make([]float32, l.k*l.n)
	c.Weights(gemm.CallerPool{}, w)
	return l, l.constant(w, l.k, l.n)
}
