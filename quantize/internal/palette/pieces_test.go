package palette

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Indices, scales and the restored weight do not depend on the number of elements that are in memory at a time.
func TestEncodingDoesNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 23), 1, 3).Draw(t, "shape")
		axis := rapid.IntRange(-1, len(shape)-1).Draw(t, "axis")
		size, block := rapid.Int64Range(0, 5).Draw(t, "size"), rapid.SampledFrom([]int64{0, 4, 16, 60}).Draw(t, "block")
		if axis < 0 {
			size *= 64
		}
		l := newLayout(shape, axis, size, block, rapid.SampledFrom([]int{4, 16, 64, 256}).Draw(t, "entries"),
			rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "vector"))
		if l.Inner%l.entry() != 0 && l.Groups > 1 || l.Block%l.entry() != 0 {
			t.Skip("vectors in several groups")
		}
		r, x := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), make([]float32, l.Elems)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		weight := quanttest.TensorOf(ir.Float, shape, x)
		want, dense := encoded(t, &encoding{Layout: l, weight: weight, limit: 1 << 20})
		for _, limit := range []spec.PieceLimit{1, spec.PieceLimit(rapid.IntRange(2, 300).Draw(t, "limit"))} {
			got, restored := encoded(t, &encoding{Layout: l, weight: weight, limit: limit})
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("output %d in pieces of %d elements is %x, in one piece %x", i, limit, got[i], want[i])
				}
			}
			if !bytes.Equal(restored, dense) {
				t.Fatalf("in pieces of %d elements another weight is restored", limit)
			}
		}
	})
}

// encoded are the outputs of e's recipe, and the weight that is restored from them.
func encoded(t *rapid.T, e *encoding) (out [][]byte, dense []byte) {
	r := e.Recipe()
	buffers, ws, parts := make([]bytes.Buffer, len(r.Out)), make([]io.Writer, len(r.Out)), make([]*ir.Tensor, len(r.Out))
	for i := range ws {
		ws[i] = &buffers[i]
	}
	if err := r.Run(context.Background(), []io.ReaderAt{bytes.NewReader(e.weight.Source.(ir.Mem))}, ws); err != nil {
		t.Fatal(err)
	}
	for i := range ws {
		out = append(out, buffers[i].Bytes())
		if got, want := int64(len(out[i])), r.Out[i].Bytes(); got != want {
			t.Fatalf("%v: output %d has %d bytes, %d declared", e.weight.Shape, i, got, want)
		}
		parts[i] = &ir.Tensor{Spec: r.Out[i], Source: ir.Mem(out[i])}
	}
	eval := ir.NewEval("")
	defer eval.Close()
	dense, err := eval.ReadAll(context.Background(), e.Restore(parts))
	if err != nil {
		t.Fatal(err)
	}
	return out, dense
}
