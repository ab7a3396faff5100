package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Every benchmark counts bytes of float32 (or of input, for bytes), so that its rate compares with BenchmarkCopy's of
// the same run. Data are in a buffer larger than the inner caches, in blocks of 1 MiB, the block size of the streaming
// writer.

const (
	benchBlock  = 1 << 18 // elements: 1 MiB of float32
	benchBlocks = 64
)

func benchFloats() []float32 {
	r := rand.New(rand.NewPCG(1, 0))
	x := make([]float32, benchBlock*benchBlocks)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// eachBlock runs body on one block after another.
func eachBlock(b *testing.B, x []float32, body func(block []float32)) {
	b.SetBytes(4 * benchBlock)
	at := 0
	for b.Loop() {
		body(x[at : at+benchBlock])
		at = (at + benchBlock) % len(x)
	}
}

func BenchmarkCopy(b *testing.B) {
	dst := make([]float32, benchBlock)
	eachBlock(b, benchFloats(), func(x []float32) { copy(dst, x) })
}

var benchWidths = []int{768, 4096}

func BenchmarkQuantizeRows(b *testing.B) {
	for _, cols := range benchWidths {
		b.Run(fmt.Sprint(cols), func(b *testing.B) {
			dst := make([]byte, benchBlock)
			eachBlock(b, benchFloats(), func(x []float32) {
				for at := 0; at+cols <= len(x); at += cols {
					row := x[at : at+cols]
					scale := math.Float32frombits(AbsMaxBits(row)) / 127
					Quantize(dst[at:at+cols], row, scale, 0, IntRange{-127, 127})
				}
			})
		})
	}
}

func BenchmarkQuantizeCols(b *testing.B) {
	for _, cols := range append([]int{10, 64}, benchWidths...) {
		b.Run(fmt.Sprint(cols), func(b *testing.B) {
			dst, acc, scale := make([]byte, benchBlock), make([]uint32, cols), make([]float32, cols)
			eachBlock(b, benchFloats(), func(x []float32) {
				x = x[:len(x)/cols*cols]
				clear(acc)
				ColAbsMaxBits(acc, x)
				for j, top := range acc {
					scale[j] = math.Float32frombits(top) / 127
				}
				QuantizeCols(dst[:len(x)], x, scale, nil, IntRange{-127, 127})
			})
		})
	}
}

// BenchmarkFloats is one pass over a block each.
func BenchmarkFloats(b *testing.B) {
	half, codes := make([]uint16, benchBlock), make([]byte, benchBlock)
	wide, picked := make([]float32, benchBlock), make([]uint32, 0, benchBlock)
	var sums ErrorSums
	limit := math.Float32bits(1.6)
	for _, f := range []struct {
		name string
		run  func(x []float32)
	}{
		{"AbsMaxBits", func(x []float32) { AbsMaxBits(x) }},
		{"MinMax", func(x []float32) { MinMax(x) }},
		{"F16FromF32", func(x []float32) { F16FromF32(half, x) }},
		{"F32FromF16", func([]float32) { F32FromF16(wide, half) }},
		{"BF16FromF32", func(x []float32) { BF16FromF32(half, x) }},
		{"F32FromBF16", func([]float32) { F32FromBF16(wide, half) }},
		{"Dequantize", func([]float32) { Dequantize(wide, codes, true, 0.01, 0) }},
		{"FilterRange", func(x []float32) { FilterRange(picked[:0], x, limit, limit+1<<16) }},
		{"ZeroBelow", func(x []float32) { copy(wide, x); ZeroBelow(wide, limit, 100) }},
		{"NMRows", func(x []float32) { copy(wide, x); NMRows(wide, 2, 4) }},
		{"ErrorSums", func(x []float32) { sums.Add(x, wide) }},
	} {
		b.Run(f.name, func(b *testing.B) { eachBlock(b, benchFloats(), f.run) })
	}
}

// BenchmarkBytes works on 1 MiB of bytes, a tenth of the elements values.
func BenchmarkBytes(b *testing.B) {
	const side = 1 << 10
	for _, size := range elementSizes {
		data := make([]byte, side*side)
		for i := 0; i < len(data); i += 10 * size {
			data[i] = 1
		}
		mask, out := make([]byte, len(data)/size/8), make([]byte, len(data))
		NonZero(mask, data, size)
		values := Compress(nil, data, size)
		for _, f := range []struct {
			name string
			run  func()
		}{
			{"NonZero", func() { NonZero(mask, data, size) }},
			{"Compress", func() { Compress(out[:0], data, size) }},
			{"Expand", func() { Expand(out, mask, values, size) }},
		} {
			b.Run(fmt.Sprint(f.name, size), func(b *testing.B) { repeat(b, len(data), f.run) })
		}
	}
	src, dst := make([]byte, side*side), make([]byte, side*side)
	b.Run("Transpose", func(b *testing.B) {
		repeat(b, len(src), func() { TransposeBytes(dst, src, side, side) })
	})
}

func repeat(b *testing.B, bytes int, run func()) {
	b.SetBytes(int64(bytes))
	for b.Loop() {
		run()
	}
}
