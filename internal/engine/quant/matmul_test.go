package quant

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/ir"
)

// at is element i of values, which has one element or one per i.
func at[T any](v []T, i int) T { return v[i%len(v)] }

func TestMatMulIntegerEqualsTheDefinition(t *testing.T) {
	for _, types := range [][2]ir.DType{{ir.Uint8, ir.Int8}, {ir.Uint8, ir.Uint8}, {ir.Int8, ir.Int8},
		{ir.Int8, ir.Uint8}} {
		for _, n := range []int64{1, 20, 33} {
			a, b := quantizedValues(1, types[0], 2, 5, 37), quantizedValues(2, types[1], 37, n)
			for _, zero := range [][2]int64{{1, 1}, {5, n}} {
				za, zb := quantizedValues(3, types[0], zero[0]), quantizedValues(4, types[1], zero[1])
				got := ir.View[int32](must(t, "MatMulInteger", nil, a, b, za, zb))
				want := sums(t, a, b, za, zb, 10, 37, int(n), 5)
				if !slices.Equal(got, want) {
					t.Errorf("%v, %d columns, zero points %v: got %v, want %v", types, n, zero, got, want)
				}
			}
		}
	}
}

// sums are those of m×k times k×n; the zero points of a are repeated over its rows.
func sums(t *testing.T, a, b, za, zb *ir.Array, m, k, n, rows int) []int32 {
	t.Helper()
	x, y, zx, zy := wholes(t, a), wholes(t, b), wholes(t, za), wholes(t, zb)
	out := make([]int32, m*n)
	for i := range out {
		for l := range k {
			out[i] += (x[i/n*k+l] - at(zx, i/n%rows)) * (y[l*n+i%n] - at(zy, i%n))
		}
	}
	return out
}

func TestMatMulIntegerBroadcasts(t *testing.T) {
	a, b := quantizedValues(1, ir.Uint8, 3, 1, 4, 6), quantizedValues(2, ir.Int8, 2, 6, 5)
	got := must(t, "MatMulInteger", nil, a, b)
	if !slices.Equal(got.Shape, []int64{3, 2, 4, 5}) {
		t.Fatalf("got %s", got)
	}
	zero := ir.NewArray(ir.Uint8, 1)
	for i := range 6 {
		left := &ir.Array{DType: ir.Uint8, Shape: []int64{4, 6}, Data: part(a.Data, i/2, 24)}
		right := &ir.Array{DType: ir.Int8, Shape: []int64{6, 5}, Data: part(b.Data, i%2, 30)}
		want := sums(t, left, right, zero, ir.NewArray(ir.Int8, 1), 4, 6, 5, 1)
		if !slices.Equal(part(ir.View[int32](got), i, 20), want) {
			t.Errorf("matrix %d does not equal the unbroadcast product", i)
		}
	}
	vector := must(t, "MatMulInteger", nil, quantizedValues(1, ir.Uint8, 6), b)
	if !slices.Equal(vector.Shape, []int64{2, 5}) {
		t.Errorf("vector times matrices: got %s", vector)
	}
}

// clamp rounds half to even and saturates.
func clamp(v float64, dt ir.DType) int32 {
	r := ranges[dt]
	return int32(min(max(math.RoundToEven(v), float64(r.lo)), float64(r.hi)))
}

func TestQLinearMatMulRequantizes(t *testing.T) {
	for _, dt := range []ir.DType{ir.Uint8, ir.Int8} {
		a, b := quantizedValues(1, ir.Uint8, 7, 40), quantizedValues(2, ir.Int8, 40, 18)
		za, zb, zy := quantizedValues(3, ir.Uint8, 1), quantizedValues(4, ir.Int8, 18), quantizedValues(5, dt, 1)
		sa, sb, sy := one(0.03), scale(6, 18), one(2.5)
		got := wholes(t, must(t, "QLinearMatMul", nil, a, sa, za, b, sb, zb, sy, zy))
		for i, sum := range sums(t, a, b, za, zb, 7, 40, 18, 1) {
			s := float32(0.03) * ir.View[float32](sb)[i%18] / 2.5
			want := float64(float32(sum) * s) // rounded before the zero point is added
			if w := clamp(math.RoundToEven(want)+float64(wholes(t, zy)[0]), dt); got[i] != w {
				t.Fatalf("%s: element %d of sum %d is %d, want %d", dt, i, sum, got[i], w)
			}
		}
	}
}

func TestMatMulIntegerToFloatAndQGemm(t *testing.T) {
	a, b := quantizedValues(1, ir.Uint8, 7, 40), quantizedValues(2, ir.Int8, 40, 18)
	za, zb := quantizedValues(3, ir.Uint8, 1), quantizedValues(4, ir.Int8, 18)
	sb, bias := scale(6, 18), random(7, 18)
	whole := ir.NewArray(ir.Int32, 18)
	for i := range 18 {
		ir.View[int32](whole)[i] = int32(i*500 - 4000)
	}
	floats := ir.View[float32](must(t, "MatMulIntegerToFloat", nil, a, b, one(0.03), sb, za, zb, bias))
	gemm := ir.View[float32](must(t, "QGemm", attrs{"alpha": 0.5}, a, one(0.03), za, b, sb, zb, whole))
	for i, sum := range sums(t, a, b, za, zb, 7, 40, 18, 1) {
		j := i % 18
		s := ir.View[float32](sb)[j]
		if want := float32(float32(sum)*float32(0.03*s)) + ir.View[float32](bias)[j]; floats[i] != want {
			t.Fatalf("MatMulIntegerToFloat: element %d is %v, want %v", i, floats[i], want)
		}
		if want := float32(sum+ir.View[int32](whole)[j]) * float32(float32(0.5)*0.03*s); gemm[i] != want {
			t.Fatalf("QGemm: element %d is %v, want %v", i, gemm[i], want)
		}
	}
}

func TestQGemmTransposes(t *testing.T) {
	a, b := quantizedValues(1, ir.Uint8, 5, 9), quantizedValues(2, ir.Uint8, 9, 6)
	za, zb, zy := quantizedValues(3, ir.Uint8, 1), quantizedValues(4, ir.Uint8, 1), quantizedValues(5, ir.Uint8, 1)
	want := must(t, "QGemm", nil, a, one(0.1), za, b, one(0.1), zb, nil, one(3), zy)
	got := must(t, "QGemm", attrs{"transA": 1, "transB": 1}, turned(a), one(0.1), za, turned(b), one(0.1), zb, nil,
		one(3), zy)
	if !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got %v, want %v", got.Data, want.Data)
	}
}

// turned is a transposed matrix of bytes.
func turned(a *ir.Array) *ir.Array {
	rows, cols := a.Shape[0], a.Shape[1]
	to := ir.NewArray(a.DType, cols, rows)
	for i := range to.Data {
		to.Data[i] = a.Data[int64(i)%rows*cols+int64(i)/rows]
	}
	return to
}

// The fused operator is bit-identical to the nodes that it replaces.
func TestQuantizedMatMulEqualsUnfusedNodes(t *testing.T) {
	for _, shape := range [][]int64{{1, 48}, {33, 48}, {2, 3, 48}, {48}} {
		for _, columns := range []int64{1, 50} {
			x, w := random(1, shape...), quantizedValues(2, ir.Int8, 48, 50)
			zero, bias := quantizedValues(3, ir.Int8, columns), random(4, 50)
			ws := scale(5, columns)
			out, err := compute("DynamicQuantizeLinear", nil, 2, 3, []*ir.Array{x})
			if err != nil {
				t.Fatal(err)
			}
			sum := must(t, "MatMulInteger", nil, out[0], w, out[2], zero)
			got := must(t, "QuantizedMatMul", nil, x, w, ws, zero, bias)
			if !slices.Equal(got.Shape, sum.Shape) {
				t.Fatalf("got %s, want shape %v", got, sum.Shape)
			}
			for i, v := range ir.View[int32](sum) {
				both := ir.View[float32](out[1])[0] * at(ir.View[float32](ws), i%50)
				want := float32(float32(v)*both) + ir.View[float32](bias)[i%50]
				if y := ir.View[float32](got)[i]; y != want {
					t.Fatalf("%v: element %d is %v, want %v", shape, i, y, want)
				}
			}
		}
	}
}

func TestMatMulNBitsEqualsTheDefinition(t *testing.T) {
	for _, bits := range []int{2, 4, 8} {
		for _, zeros := range []string{"none", "packed", "floats"} {
			const m, k, n, block = 3, 100, 37, 32
			const blocks = (k + block - 1) / block
			a := random(1, m, k)
			b := quantizedValues(2, ir.Uint8, n, blocks, int64(block*bits/8))
			s, bias := scale(3, n, blocks), random(4, n)
			zero := func(_, _ int) float32 { return float32(int(1) << (bits - 1)) }
			var z *ir.Array
			switch zeros {
			case "packed":
				row := (blocks*bits + 7) / 8
				z = quantizedValues(5, ir.Uint8, n, int64(row))
				zero = func(col, blk int) float32 { return float32(narrow.Element(z.Data[col*row:], blk, bits)) }
			case "floats":
				z = random(5, n, blocks)
				zero = func(col, blk int) float32 { return ir.View[float32](z)[col*blocks+blk] }
			}
			got := must(t, "MatMulNBits", attrs{"K": k, "N": n, "bits": bits, "block_size": block}, a, b, s, z, nil,
				bias)
			for i, y := range ir.View[float32](got) {
				want, size := float64(ir.View[float32](bias)[i%n]), 1.0
				for l := range k {
					col, blk := i%n, l/block
					q := narrow.Element(part(b.Data, col, blocks*block*bits/8), l, bits)
					v := float64(ir.View[float32](a)[i/n*k+l]) * float64((float32(q)-zero(col,
						blk))*ir.View[float32](s)[col*blocks+blk])
					want, size = want+v, size+math.Abs(v)
				}
				if !(math.Abs(float64(y)-want) <= 1e-6*size) {
					t.Fatalf("%d bits, zero points %s: element %d is %v, want %v", bits, zeros, i, y, want)
				}
			}
		}
	}
}

// With accuracy level 4, each block of a row is rounded to the nearest multiples of its largest magnitude / 127. Rows
// that are not whole blocks are multiplied by float32, which the level permits.
func TestMatMulNBitsOfInt8Activations(t *testing.T) {
	const n = 37
	for _, c := range []struct {
		bits, k, block, rounded int
		zeros                   bool
	}{{4, 96, 16, 16, true}, {4, 96, 32, 32, false}, {4, 256, 128, 32, true}, {4, 100, 32, 0, true},
		{2, 96, 16, 16, true}, {2, 128, 64, 32, false}, {8, 96, 32, 32, true}, {8, 96, 16, 16, false},
		{8, 100, 32, 0, true}} {
		blocks := (c.k + c.block - 1) / c.block
		a, b, s := random(1, 3, int64(c.k)), quantizedValues(2, ir.Uint8, n, int64(blocks), int64(c.block*c.bits/8)),
			scale(3, n, int64(blocks))
		var z *ir.Array
		if c.zeros {
			z = quantizedValues(5, ir.Uint8, n, int64((blocks*c.bits+7)/8))
		}
		sizes := attrs{"K": c.k, "N": n, "bits": c.bits, "block_size": c.block}
		rounded := &ir.Array{DType: ir.Float, Shape: a.Shape, Data: bytes.Clone(a.Data)}
		if x := ir.View[float32](rounded); c.rounded > 0 {
			for at := 0; at < len(x); at += c.rounded {
				roundBlock(x[at : at+c.rounded])
			}
		}
		want := ir.View[float32](must(t, "MatMulNBits", sizes, rounded, b, s, z))
		sizes["accuracy_level"] = 4
		got := ir.View[float32](must(t, "MatMulNBits", sizes, a, b, s, z))
		exact := ir.View[float32](must(t, "MatMulNBits",
			attrs{"K": c.k, "N": n, "bits": c.bits, "block_size": c.block}, a, b, s, z))
		differs := false
		for i := range got {
			if d := math.Abs(float64(got[i] - want[i])); d > 1e-4*max(1, math.Abs(float64(want[i]))) {
				t.Fatalf("%+v: element %d is %v, want %v", c, i, got[i], want[i])
			}
			differs = differs || got[i] != exact[i]
		}
		if differs != (c.rounded > 0) {
			t.Errorf("%+v: the activations are rounded: %v", c, differs)
		}
	}
}

// roundBlock rounds to int8 and back.
func roundBlock(x []float32) {
	top := float32(0)
	for _, v := range x {
		top = max(top, v, -v)
	}
	for i, v := range x {
		x[i] = float32(math.RoundToEven(float64(v/(top/127)))) * (top / 127)
	}
}

func TestMatMulNBitsOfHalves(t *testing.T) {
	a, b, s := half(random(1, 2, 32)), quantizedValues(2, ir.Uint8, 5, 1, 16), half(scale(3, 5, 1))
	sizes := attrs{"K": 32, "N": 5, "block_size": 32}
	got := must(t, "MatMulNBits", sizes, a, b, s)
	wide := must(t, "MatMulNBits", sizes, widened(a), b, widened(s))
	if want := half(wide); !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got %v, want %v: float32 rounded once", got.Data, want.Data)
	}
}

// A vector has no axes to swap, for any transA and transB.
func TestVectorsAreNotTransposed(t *testing.T) {
	row, matrix, column := quantizedValues(1, ir.Uint8, 6), quantizedValues(2, ir.Int8, 6, 5),
		quantizedValues(3, ir.Int8, 6)
	for _, b := range []*ir.Array{matrix, column} {
		want := must(t, "MatMulInteger", nil, row, b)
		a := attrs{"transA": 1}
		if b == column {
			a["transB"] = 1
		}
		if got := must(t, "MatMulInteger", a, row, b); !slices.Equal(got.Shape, want.Shape) ||
			!bytes.Equal(got.Data, want.Data) {
			t.Errorf("times %v: got %v, want %v", b, got, want)
		}
	}
}
