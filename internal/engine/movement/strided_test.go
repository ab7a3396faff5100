package movement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Every strided transfer, compared with the definition of Transpose for each element width.
func TestTransposeEqualsTheDefinition(t *testing.T) {
	widths := []ir.DType{ir.Int64, ir.Float, ir.Float16, ir.Uint8, ir.Complex128, ir.String, ir.Int4, ir.Uint2}
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 9), 0, 5).Draw(t, "shape")
		perm := rapid.Permutation(axes(len(shape))).Draw(t, "perm")
		dt := rapid.SampledFrom(widths).Draw(t, "type")
		x := count(shape...)
		y := count(permuted(shape, perm)...)
		for i := range ir.View[int64](y) {
			ir.View[int64](y)[i] = sourceOf(i, y.Shape, permuted(op.Strides(shape), perm))
		}
		got, err := run("Transpose", 13, 1, attrs(nums("perm", perm...)), as(dt, x))
		if err != nil {
			t.Fatal(err)
		}
		if err := same(got[0], as(dt, y)); err != nil {
			t.Fatal(err)
		}
	})
}

func axes(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// sourceOf is the source of element i of a tensor of that shape.
func sourceOf(i int, shape, strides []int64) int64 {
	at := int64(0)
	for k, s := range op.Strides(shape) {
		at += int64(i) / s % shape[k] * strides[k]
	}
	return at
}

// Large enough for several workers: squares, rows, and single elements.
func TestLargeTransposesAreShared(t *testing.T) {
	for _, c := range []struct{ shape, perm []int64 }{
		{[]int64{300, 401}, []int64{1, 0}},
		{[]int64{5, 70, 3, 64}, []int64{0, 2, 1, 3}},
		{[]int64{33, 31, 37, 2}, []int64{2, 3, 0, 1}},
		{[]int64{3, 40000}, []int64{1, 0}},
		{[]int64{40000, 3}, []int64{1, 0}},
	} {
		got, err := run("Transpose", 13, 1, attrs(nums("perm", c.perm...)), count(c.shape...))
		if err != nil {
			t.Fatal(err)
		}
		strides := permuted(op.Strides(c.shape), c.perm)
		for i, x := range ir.View[int64](got[0]) {
			if want := sourceOf(i, got[0].Shape, strides); x != want {
				t.Fatalf("%v by %v: element %d is %d, want %d", c.shape, c.perm, i, x, want)
			}
		}
	}
}

func TestSliceEqualsPython(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 7).Draw(t, "size")
		start, end := rapid.Int64Range(-9, 9).Draw(t, "start"), rapid.Int64Range(-9, 9).Draw(t, "end")
		step := rapid.SampledFrom([]int64{-8, -3, -2, -1, 1, 2, 3, 8}).Draw(t, "step")
		if step < 0 && start < -size {
			t.Skip("the one case where ONNX differs from Python")
		}
		got := spanOf(start, end, step, size)
		want := pythons(start, end, step, size)
		if got.n != int64(len(want)) || got.n > 0 && got.start != want[0] {
			t.Fatalf("[%d:%d:%d] of %d: %+v, want %v", start, end, step, size, got, want)
		}
	})
}

// pythons are range(*slice(start, end, step).indices(size)).
func pythons(start, end, step, size int64) []int64 {
	place := func(i int64) int64 {
		if i < 0 {
			i += size
		}
		if step < 0 {
			return min(max(i, -1), size-1)
		}
		return min(max(i, 0), size)
	}
	var out []int64
	for i := place(start); step > 0 && i < place(end) || step < 0 && i > place(end); i += step {
		out = append(out, i)
	}
	return out
}

// Elements of 4, 2 and 6 bits are packed lowest bits first, also across bytes.
func TestPackingRoundTrip(t *testing.T) {
	for _, c := range []struct {
		dt   ir.DType
		data []byte
		want []uint8
	}{
		{ir.Int4, []byte{0x21, 0x03}, []uint8{1, 2, 3}},
		{ir.Uint2, []byte{0xe4, 0x02}, []uint8{0, 1, 2, 3, 2}},
		{ir.Float6E2M3, []byte{0x81, 0x30, 0x10}, []uint8{1, 2, 3, 4}},
	} {
		a := &ir.Array{DType: c.dt, Shape: []int64{int64(len(c.want))}, Data: slices.Clone(c.data)}
		got := unpack(a)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.dt, got, c.want)
		}
		pack(a, got)
		if !slices.Equal(a.Data, c.data) {
			t.Errorf("%s: packed to %x, want %x", c.dt, a.Data, c.data)
		}
	}
}

func TestRowsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Ops() {
		key := fmt.Sprint(o.Domain, o.Type, o.Since)
		if seen[key] || o.Since < 1 {
			t.Errorf("%s since %d", o.Type, o.Since)
		}
		seen[key] = true
	}
}
