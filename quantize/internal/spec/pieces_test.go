package spec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// Values are packed in order, the first one in the lowest bits, however they are divided into pieces.
func TestPackedWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]int{2, 4, 6, 8}).Draw(t, "bits")
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteMax(1<<bits-1), 0, 20), 0, 8).Draw(t, "pieces")
		want := make([]byte, (len(slices.Concat(pieces...))*bits+7)/8)
		for i, v := range slices.Concat(pieces...) {
			for b := range bits {
				at := i*bits + b
				want[at/8] |= v >> b & 1 << (at % 8)
			}
		}
		if bits == 6 { // whole groups of three bytes
			want = append(want, make([]byte, (len(want)+2)/3*3-len(want))...)
		}
		var got bytes.Buffer
		w := NewPackedWriter(&got, bits)
		for _, p := range pieces {
			if err := w.Write(slices.Clone(p)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bits: %x, want %x", bits, got.Bytes(), want)
		}
	})
}

// Scales broadcast to the weight: the scale of an element, by the layout, is that at its indices along the axes of the
// scales' shape.
func TestLayoutOfAxesBroadcasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 4), 1, 6).Draw(t, "shape")
		axes := rapid.SliceOfDistinct(rapid.IntRange(0, len(shape)-1), rapid.ID).Draw(t, "axes")
		g, scales := LayoutOfAxes(shape, axes)
		if len(axes) == 0 {
			scales = slices.Repeat([]int64{1}, len(shape))
		}
		if n := (ir.Spec{Shape: scales}).Elems(); n != g.NumScales() || g.Elems() != (ir.Spec{Shape: shape}).Elems() {
			t.Fatalf("%+v of %v and scales of %v", g, shape, scales)
		}
		alternations, last := 0, false
		for i := len(shape) - 1; i >= 0; i-- {
			if kept := slices.Contains(axes, i); shape[i] > 1 && kept != last {
				alternations, last = alternations+1, kept
			}
		}
		for i, n := range scales {
			if want := slices.Contains(axes, i) && n != shape[i]; want && alternations <= 3 {
				t.Errorf("axis %d of %v shares scales", i, shape)
			}
		}
		for e := range g.Elems() {
			scale, rest, stride := int64(0), e, int64(1)
			for i := len(shape) - 1; i >= 0; i-- {
				if scales[i] > 1 {
					scale, stride = scale+rest%shape[i]*stride, stride*shape[i]
				}
				rest /= shape[i]
			}
			row := g.channels * g.inner
			if got := e/(g.rows*row)*g.channels + e%row/g.inner; got != scale {
				t.Fatalf("element %d of %v has scale %d of %+v, %d of %v", e, shape, got, g, scale, scales)
			}
		}
	})
}

// What is stored, and what is restored from it, does not depend on the number of elements that are in memory at a time:
// the bytes are those of a weight in one piece.
func TestEncodingsDoNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom([]ir.DType{ir.Float, ir.Float16, ir.BFloat16}).Draw(t, "type")
		e := drawEncoding(t, dt)
		whole := e(1 << 20)
		weight := whole.Recipe().In[0]
		want, dense := encoded(t, whole, weight)
		for _, limit := range []PieceLimit{1, PieceLimit(rapid.IntRange(2, 300).Draw(t, "limit"))} {
			got, restored := encoded(t, e(limit), weight)
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

// drawEncoding is an encoding of a random weight of type dt by piece limit.
func drawEncoding(t *rapid.T, dt ir.DType) func(PieceLimit) Encoding {
	shape := rapid.SliceOfN(rapid.Int64Range(1, 23), 1, 4).Draw(t, "shape")
	kind := rapid.SampledFrom([]string{"per channel", "transposed", "blockwise", "float8", "float4"}).Draw(t, "kind")
	if kind == "transposed" || kind == "blockwise" {
		shape = []int64{rapid.Int64Range(1, 131).Draw(t, "rows"), rapid.Int64Range(1, 71).Draw(t, "columns")}
	}
	if kind == "float4" {
		shape = append(shape, rapid.Int64Range(16, 70).Draw(t, "reduction"), rapid.Int64Range(1, 9).Draw(t, "inner"))
	}
	r, x := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), make([]float32, (ir.Spec{Shape: shape}).Elems())
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Ldexp(1, r.IntN(5)))
	}
	weight := quanttest.TensorOf(dt, shape, x)
	axes := rapid.SliceOfNDistinct(rapid.IntRange(0, len(shape)-1), 0, -1, rapid.ID).Draw(t, "axes")
	qs := QuantSpec{Unsigned: rapid.Bool().Draw(t, "unsigned"), Symmetric: rapid.Bool().Draw(t, "symmetric")}
	switch kind {
	case "float8":
		return func(limit PieceLimit) Encoding {
			s := NewFloat8(Float8Types["e4m3fn"], &ir.Value{Const: weight}, axes).(*Float8Encoding)
			s.Layout.limit = limit
			return s
		}
	case "float4":
		return func(limit PieceLimit) Encoding {
			s := NewFloat4(Float4Type, &ir.Value{Const: weight}, nil, 16, true).(*Float4Encoding)
			s.limit = limit
			return s
		}
	case "blockwise":
		all := blockLayouts(shape[0], shape[1], rapid.SampledFrom([]int{16, 11, 32, 131}).Draw(t, "block"))
		maps.DeleteFunc(all, func(_ string, b *BlockLayout) bool { return b.ForNBits && b.Spec.Block%16 != 0 })
		names := slices.Sorted(maps.Keys(all))
		layout := all[rapid.SampledFrom(names).Draw(t, "layout")]
		seen := shape
		if layout.ColumnMajor {
			seen = []int64{shape[1], shape[0]}
		}
		weight := quanttest.TensorOf(dt, seen, x)
		feedback := rapid.Bool().Draw(t, "feedback")
		return func(limit PieceLimit) Encoding {
			b := *layout
			b.limit = limit
			if feedback { // goes on from piece to piece
				b.Spec.Feedback = true
				b.Rounder = func(c *solve.Quantized, w []float32, _, _ int) error {
					solve.MSE(c, w)
					return nil
				}
			}
			return &Blockwise{Weight: weight, Shape: seen, Layout: &b}
		}
	}
	return func(limit PieceLimit) Encoding {
		c := &PerChannel{Weight: weight, Shape: shape, Spec: qs, Axis: -1, Transpose: kind == "transposed"}
		c.Layout, c.ScaleShape = LayoutOfAxes(shape, axes)
		if c.Transpose {
			c.Layout, c.ScaleShape = LayoutOfAxes(shape, []int{0})
		}
		c.Layout.limit = limit
		return c
	}
}

// encoded are the outputs of e's recipe, and the weight that is restored from them.
func encoded(t *rapid.T, e Encoding, weight *ir.Tensor) (out [][]byte, dense []byte) {
	r := e.Recipe()
	buffers, ws, parts := make([]bytes.Buffer, len(r.Out)), make([]io.Writer, len(r.Out)), make([]*ir.Tensor, len(r.Out))
	for i := range ws {
		ws[i] = &buffers[i]
	}
	if err := r.Run(context.Background(), []io.ReaderAt{bytes.NewReader(weight.Source.(ir.Mem))}, ws); err != nil {
		t.Fatal(err)
	}
	for i := range ws {
		out = append(out, buffers[i].Bytes())
		if got, want := int64(len(out[i])), r.Out[i].Bytes(); got != want {
			t.Fatalf("%s %v: output %d has %d bytes, %d declared", r.Name, weight.Shape, i, got, want)
		}
		parts[i] = &ir.Tensor{Spec: r.Out[i], Source: ir.Mem(out[i])}
	}
	eval := ir.NewEval("")
	defer eval.Close()
	dense, err := eval.ReadAll(context.Background(), e.Restore(parts))
	if err != nil {
		t.Fatal(fmt.Errorf("restore: %w", err))
	}
	return out, dense
}
