package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// tileOf is x as whole rows, with bases and mids as in the callers.
func tileOf(x []float32, symmetric bool) (tile []float32, base, mid [BlockCols]float32, g BlockGrid) {
	tile = x[:len(x)/BlockCols*BlockCols]
	g = BlockGrid{Lo: 0, Hi: 15, Center: 7.5, Factors: []float32{1, 0.9, 0.75, 0.6}}
	if symmetric {
		g = BlockGrid{Lo: -8, Hi: 7, Factors: []float32{1, -1, 0.8, -0.8, 0.5}}
	}
	for j := range base {
		lo, hi := float32(0), float32(0)
		for i := j; i < len(tile); i += BlockCols {
			lo, hi = min(lo, tile[i]), max(hi, tile[i])
		}
		if base[j] = (hi - lo) / 15; base[j] < 0x1p-100 {
			base[j] = 1
		}
		if !symmetric {
			mid[j] = (lo + hi) / 2
		}
	}
	return tile, base, mid, g
}

func checkSearchBlock(t *testing.T, x []float32) {
	t.Helper()
	for i, v := range x {
		if math.Abs(float64(v)) > 1e15 || v != v {
			x[i] = float32(i%7) - 3 // callers reject non-finite values
		}
	}
	for _, symmetric := range []bool{false, true} {
		tile, base, mid, g := tileOf(x, symmetric)
		if len(tile) == 0 {
			return
		}
		var got, want [3][BlockCols]float32
		for j := range want[2] {
			got[2][j], want[2][j] = float32(j%3-1), float32(j%3-1)
		}
		SearchBlock(&got[0], &got[1], &got[2], tile, &base, &mid, g)
		searchBlockGo(&want[0], &want[1], &want[2], tile, &base, &mid, g)
		for i := range want {
			wantSame(t, got[i][:], want[i][:])
		}
		checkShrinkBlock(t, tile, base, got[1], g)
	}
}

func checkShrinkBlock(t *testing.T, tile []float32, base, zero [BlockCols]float32, g BlockGrid) {
	t.Helper()
	want := zero
	for j := range base {
		base[j] = 1 / base[j]
	}
	for range 3 {
		ShrinkBlock(&zero, tile, &base, g.Lo, g.Hi, 0.1)
		shrinkBlockGo(&want, tile, &base, g.Lo, g.Hi, 0.1, 1/float32(len(tile)/BlockCols))
		wantSame(t, zero[:], want[:])
	}
}

func TestSearchBlock(t *testing.T) { eachSample(t, checkSearchBlock) }

func FuzzSearchBlock(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkSearchBlock(t, x) })
}

// The selected scale has at most the squared error of each tried step with its own best scale.
func TestSearchBlockFindsTheLeastError(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, 32*BlockCols)
	for i := range x {
		x[i] = float32(r.NormFloat64()) * float32(i%BlockCols+1)
	}
	tile, base, mid, g := tileOf(x, false)
	var scale, zero, best [BlockCols]float32
	SearchBlock(&scale, &zero, &best, tile, &base, &mid, g)
	for j := range BlockCols {
		found := columnError(tile, j, scale[j], zero[j], g)
		for _, f := range g.Factors {
			step := base[j] * f
			z := float32(math.RoundToEven(float64(min(max(g.Center-mid[j]/step, 0), 15))))
			if e := columnError(tile, j, step, z, g); found > e*1.02 { // the scale is not the one of minimum error
				t.Errorf("column %d: error %g, but %g at factor %g", j, found, e, f)
			}
		}
	}
}

func columnError(tile []float32, j int, scale, zero float32, g BlockGrid) (sum float64) {
	for i := j; i < len(tile); i += BlockCols {
		q := math.RoundToEven(float64(tile[i])/float64(scale)) + float64(zero)
		q = min(max(q, float64(g.Lo)), float64(g.Hi))
		e := (q-float64(zero))*float64(scale) - float64(tile[i])
		sum += e * e
	}
	return sum
}

func checkPack(t *testing.T, codes []byte) {
	t.Helper()
	for _, bits := range []int{2, 4, 8} {
		packed, intact := guarded[byte](Packed(len(codes), bits), 0xa5)
		Pack(packed, codes, bits)
		intact(t)
		for i, c := range codes {
			at := i * bits
			if got, want := packed[at/8]>>(at%8)&(1<<bits-1), c&byte(1<<bits-1); got != want {
				t.Fatalf("%d values of %d bits: value %d is %d, want %d", len(codes), bits, i, got, want)
			}
		}
		for _, signed := range []bool{false, true} {
			back := make([]byte, len(codes))
			Unpack(back, packed, bits, signed)
			again := make([]byte, len(packed))
			Pack(again, back, bits)
			wantSame(t, again, packed)
			for i, c := range back {
				if lo := -(1 << (bits - 1)); signed && (int(int8(c)) < lo || int(int8(c)) >= -lo) || !signed &&
					int(c) >= 1<<bits {
					t.Fatalf("value %d of %d bits is %d, signed %v", i, bits, c, signed)
				}
			}
		}
	}
}

func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range append(sampleLengths(), packBlock*2+1, packBlock*4+3) {
		codes := make([]byte, n)
		for i := range codes {
			codes[i] = byte(r.Uint32())
		}
		checkPack(t, codes)
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(checkPack)
}

func checkBalanceBlock(t *testing.T, x []float32) {
	t.Helper()
	for i, v := range x {
		if math.Abs(float64(v)) > 1e15 || v != v {
			x[i] = float32(i%7) - 3 // callers reject non-finite values
		}
	}
	for _, c := range []IntRange{{0, 15}, {-8, 7}, {-128, 127}, {0, 255}} {
		tile, scale, _, _ := tileOf(x, false)
		var zero [BlockCols]int32
		var before [BlockCols]float32
		for j := range zero {
			zero[j] = c.Lo + int32(j)%(c.Hi-c.Lo+1)
			before[j] = scale[j] * float32(j-8)
			if j%3 == 0 {
				scale[j] = -scale[j]
			}
		}
		for _, stride := range []int{BlockCols, BlockCols + 5} {
			n := max(0, len(tile)/BlockCols-1)*stride + min(len(tile), BlockCols)
			got, intact := guarded[byte](n, 0xa5)
			want := make([]byte, n)
			copy(want, got)
			carry, twin := before, before
			BalanceBlock(got, stride, tile, &scale, &zero, &carry, c)
			intact(t)
			if len(tile) == 0 {
				wantSame(t, carry[:], before[:])
				continue
			}
			balanceBlockGo(want, stride, tile, &scale, &zero, &twin, c, -1/float32(len(tile)/BlockCols))
			wantSame(t, got, want)
			wantSame(t, carry[:], twin[:])
		}
	}
}

func TestBalanceBlock(t *testing.T) { eachSample(t, checkBalanceBlock) }

func FuzzBalanceBlock(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkBalanceBlock(t, x) })
}

// Without carry, values are rounded to nearest; else only zeros are unchanged, and the errors sum to the carry.
func TestBalanceBlockCompensatesErrors(t *testing.T) {
	const rows = 32
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float32, rows*BlockCols)
	for i := range x {
		if i/BlockCols%4 > 0 {
			x[i] = float32(r.NormFloat64())
		}
	}
	var scale, carry, sum [BlockCols]float32
	var zero [BlockCols]int32
	for j := range scale {
		scale[j] = 0.5
	}
	got, want := make([]byte, len(x)), make([]byte, len(x))
	BalanceBlock(got, BlockCols, x, &scale, &zero, &carry, IntRange{-8, 7})
	RoundBlock(want, BlockCols, x, &scale, &zero, IntRange{-8, 7})
	wantSame(t, got, want)
	for j := range carry {
		carry[j] = 2
	}
	BalanceBlock(got, BlockCols, x, &scale, &zero, &carry, IntRange{-8, 7})
	total := float32(0)
	for i, v := range x {
		if v == 0 && got[i] != 0 {
			t.Fatalf("a zero is quantized to %d", int8(got[i]))
		}
		sum[i%BlockCols] += float32(int8(got[i]))*0.5 - v
	}
	for j, s := range sum {
		if d := math.Abs(float64(2 + s - carry[j])); d > 1e-4 {
			t.Errorf("column %d: errors sum to %g, but carry is %g", j, s, carry[j]-2)
		}
		total += s
	}
	// a quarter of the numbers are zeros, which are not shifted
	if mean := total / BlockCols; math.Abs(float64(mean+2*0.75)) > 0.5 {
		t.Errorf("errors sum to %g on the average", mean)
	}
}

func BenchmarkBalanceBlock(b *testing.B) {
	x := make([]float32, 32*BlockCols)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	tile, scale, _, _ := tileOf(x, false)
	var zero [BlockCols]int32
	var carry [BlockCols]float32
	dst := make([]byte, len(tile))
	b.SetBytes(int64(4 * len(tile)))
	for b.Loop() {
		BalanceBlock(dst, BlockCols, tile, &scale, &zero, &carry, IntRange{0, 15})
	}
}

func BenchmarkSearchBlock(b *testing.B) {
	x := make([]float32, 32*BlockCols)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	tile, base, mid, g := tileOf(x, false)
	var scale, zero, best [BlockCols]float32
	b.SetBytes(int64(4 * len(tile)))
	for b.Loop() {
		SearchBlock(&scale, &zero, &best, tile, &base, &mid, g)
	}
}

func checkLoadBlock(t *testing.T, src []float32) {
	for _, stride := range []int{BlockCols, BlockCols + 3, 100} {
		rows := 0
		if len(src) >= BlockCols {
			rows = (len(src)-BlockCols)/stride + 1
		}
		var got, want [2][BlockCols]float32
		dst, intact := guarded[float32](rows*BlockCols, 7)
		twin := make([]float32, len(dst))
		LoadBlock(dst, &got[0], &got[1], src, stride)
		loadBlockGo(twin, &want[0], &want[1], src, stride)
		wantSame(t, Bytes(dst), Bytes(twin))
		wantSame(t, got[0][:], want[0][:])
		wantSame(t, got[1][:], want[1][:])
		intact(t)
		for i := range rows {
			wantSame(t, Bytes(dst[i*BlockCols:][:BlockCols]), Bytes(src[i*stride:][:BlockCols]))
		}
	}
}

func TestLoadBlock(t *testing.T) { eachSample(t, checkLoadBlock) }

func FuzzLoadBlock(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkLoadBlock(t, x) })
}

func checkRoundBlock(t *testing.T, x []float32) {
	t.Helper()
	for _, c := range []IntRange{{0, 15}, {-8, 7}, {-128, 127}, {0, 255}} {
		tile, scale, _, _ := tileOf(x, false)
		var zero [BlockCols]int32
		for j := range zero {
			zero[j] = c.Lo + int32(j)%(c.Hi-c.Lo+1)
			if j%3 == 0 {
				scale[j] = -scale[j]
			}
		}
		want := make([]byte, len(tile))
		QuantizeCols(want, tile, scale[:], zero[:], c)
		for _, stride := range []int{BlockCols, BlockCols + 5} {
			got, intact := guarded[byte](max(0, len(tile)/BlockCols-1)*stride+min(len(tile), BlockCols), 0xa5)
			RoundBlock(got, stride, tile, &scale, &zero, c)
			for i := range len(tile) / BlockCols {
				wantSame(t, got[i*stride:][:BlockCols], want[i*BlockCols:][:BlockCols])
			}
			intact(t)
		}
	}
}

func TestRoundBlock(t *testing.T) { eachSample(t, checkRoundBlock) }

func FuzzRoundBlock(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkRoundBlock(t, x) })
}
