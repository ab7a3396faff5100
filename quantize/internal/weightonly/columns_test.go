package weightonly

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate/layerwise"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// Parts of a stored matrix are those of the whole.
func TestPartsOfQuantizedMatrix(t *testing.T) {
	l := &matrix{k: 40, n: 7, spec: solve.Spec{Low: -8, High: 7, Block: 16}}
	want := solve.NewQuantized(l.k, l.n, l.spec)
	for i := range want.Values {
		want.Values[i] = byte(i)
	}
	zeros := make([]byte, len(want.Zero))
	for i := range want.Scale {
		want.Scale[i], want.Zero[i], zeros[i] = float32(i), int32(i)-9, byte(i-9)
	}
	var err error
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	if l.quantized, err = layerwise.Keep(t.Context(), eval, "w", want.Values, kernel.Bytes(want.Scale),
		zeros); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct{ row, rows, col, cols int }{{0, 40, 0, 7}, {16, 16, 0, 7}, {0, 40, 2, 3},
		{32, 8, 6, 1}} {
		got := solve.NewQuantized(part.rows, part.cols, l.spec)
		if err := l.load(got, part.row, part.col); err != nil {
			t.Fatal(err)
		}
		for i := range part.rows {
			for j := range part.cols {
				at, from := i*part.cols+j, (part.row+i)*l.n+part.col+j
				block, fromBlock := i/16*part.cols+j, (part.row+i)/16*l.n+part.col+j
				if got.Values[at] != want.Values[from] || got.Scale[block] != want.Scale[fromBlock] ||
					got.Zero[block] != want.Zero[fromBlock] {
					t.Fatalf("part %+v differs in element (%d, %d)", part, i, j)
				}
			}
		}
	}
}

// Columns of a matrix and of a transposed one are those of the whole.
func TestReadColumns(t *testing.T) {
	const path = fixtures + "transformer.onnx"
	s, ls := matrices(t, path)
	for _, l := range ls[:4] {
		r := &gptqRun{step: s}
		whole, err := r.read(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.columns(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		n := l.n - 3
		got, err := c.read(t.Context(), 2, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.k {
			if !slices.Equal(got[i*n:][:n], whole[i*l.n+2:][:n]) {
				t.Fatalf("%s: row %d differs", l.node.Label(), i)
			}
		}
	}
}
