package spec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// blockLayouts are the orders in which a matrix and its quantized values are stored, and the types of these.
func blockLayouts(rows, cols int64, block int) map[string]*BlockLayout {
	all := map[string]*BlockLayout{}
	for _, bits := range []int{2, 4, 8} {
		for _, columnMajor := range []bool{false, true} {
			for _, transposed := range []bool{false, true} {
				b := BlockLayout{Rows: rows, Cols: cols, ColumnMajor: columnMajor, Transposed: transposed, Bits: bits,
					DType: ir.Uint8}
				b.Spec = solve.Spec{Block: block, High: 1<<bits - 1}
				b.Rounder = func(c *solve.Quantized, w []float32, _, _ int) error { solve.Nearest(c, w); return nil }
				name := fmt.Sprintf("%d bits, column-major %t, transposed %t", bits, columnMajor, transposed)
				all[name] = &b
				if symmetric := b; !transposed {
					symmetric.Spec.Symmetric = true
					all[name+", symmetric"] = &symmetric
				}
				if columnMajor == transposed {
					continue
				}
				nbits := b
				nbits.ForNBits = true
				all[name+", MatMulNBits"] = &nbits
				if floats := nbits; bits == 4 {
					floats.FloatZeroPoints = true
					floats.Rounder = func(c *solve.Quantized, w []float32, _, _ int) error {
						solve.Nearest(c, w)
						for i, z := range c.Zero {
							c.Point[i] = float32(z)
						}
						return nil
					}
					all[name+", MatMulNBits, float zero points"] = &floats
				}
			}
		}
	}
	return all
}

// Scales differ from block to block, so that one of another block is noticed.
func TestBlockwiseRestoresWeights(t *testing.T) {
	restoresWeights(t, 37, 45, 16, 100)
	restoresWeights(t, 128, 48, 32, 3000)
	restoresWeights(t, 1, 50, 16, 7)
	restoresWeights(t, 50, 1, 16, 7)
}

func TestBlockwiseRestoresLargeWeights(t *testing.T) {
	restoresWeights(t, 1100, 1023, 64, 8<<20)   // in chunks, whose zero points do not fill bytes
	restoresWeights(t, 700, 1030, 128, 200_000) // in parts of lines
}

// restoresWeights checks all layouts of a size, with a dequantizer that holds some elements.
func restoresWeights(t *testing.T, rows, cols int64, block int, held int64) {
	for name, b := range blockLayouts(rows, cols, block) {
		t.Run(fmt.Sprintf("%d × %d, %s", rows, cols, name), func(t *testing.T) { roundTrip(t, b, held) })
	}
}

func roundTrip(t *testing.T, b *BlockLayout, held int64) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, b.Rows*b.Cols)
	at := func(row, col int64) int64 {
		if b.ColumnMajor {
			return col*b.Rows + row
		}
		return row*b.Cols + col
	}
	magnitude := func(row, col int64) float64 {
		return math.Ldexp(1, int((row/int64(b.Spec.Block)*7+col)%12))
	}
	for row := range b.Rows {
		for col := range b.Cols {
			x[at(row, col)] = float32((r.Float64() - 0.3) * magnitude(row, col))
		}
	}
	shape := []int64{b.Rows, b.Cols}
	if b.ColumnMajor {
		shape = []int64{b.Cols, b.Rows}
	}
	c := &Blockwise{Weight: quanttest.TensorOf(ir.Float, shape, x), Shape: shape, Layout: b}
	recipe := c.Recipe()
	var out []io.Writer
	parts := make([]bytes.Buffer, len(recipe.Out))
	for i := range parts {
		out = append(out, &parts[i])
	}
	if err := recipe.Run(context.Background(), []io.ReaderAt{bytes.NewReader(kernel.Bytes(x))}, out); err != nil {
		t.Fatal(err)
	}
	var in []io.ReaderAt
	for i := range parts {
		if got := int64(parts[i].Len()); got != recipe.Out[i].Bytes() {
			t.Fatalf("output %d has %d bytes, want %d", i, got, recipe.Out[i].Bytes())
		}
		in = append(in, bytes.NewReader(parts[i].Bytes()))
	}
	d := newBlockDequantizer(c, in)
	d.panelElems = held
	var restored bytes.Buffer
	if err := d.run(context.Background(), &FloatWriter{W: &restored, Dt: ir.Float}); err != nil {
		t.Fatal(err)
	}
	got := kernel.Words[float32](restored.Bytes())
	if len(got) != len(x) {
		t.Fatalf("%d values restored, want %d", len(got), len(x))
	}
	levels := float64(int(1)<<b.Bits - 1)
	for row := range b.Rows {
		for col := range b.Cols {
			// The range of a block, with 0, is at most its magnitude; a symmetric one takes twice the largest value.
			step := 1.4 * magnitude(row, col) / (levels - 1)
			if i := at(row, col); math.Abs(float64(got[i]-x[i])) > step*0.51 {
				t.Fatalf("row %d, column %d: %g, want %g ± %g", row, col, got[i], x[i], step*0.51)
			}
		}
	}
}
