// Command gen writes the AVX2 assembly of package kernel, ../avx2_amd64.s, and the Go
// declarations for it, ../avx2_amd64.go. It is a module of its own so that nobody who builds
// mcompress needs avo; `go generate ./kernel` runs it.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64,!noasm")
	t := newTables()
	cpuid()
	absMaxBits()
	colAbsMaxBits(1)
	colAbsMaxBits(4)
	minMax()
	colMinMax(1)
	colMinMax(4)
	quantize(t.packOrder)
	quantizeCols("quantizeColsAVX2", false, t.packOrder)
	quantizeCols("quantizeColsZeroAVX2", true, t.packOrder)
	dequantize()
	dequantizeCols("dequantizeColsAVX2", false)
	dequantizeCols("dequantizeColsZeroAVX2", true)
	f16FromF32()
	f32FromF16()
	bf16FromF32()
	f32FromBF16()
	filterRange(t.compact)
	zeroUpTo()
	countMagnitude()
	nmRows()
	nmCols()
	errorLanes()
	transposeBytes()
	nonZero1()
	nonZero2()
	nonZero4()
	nonZero8()
	compress1(t.compact)
	compress2(t.compact)
	compress4(t.compact)
	compress8(t.compact)
	expand1(t.expand)
	expand2(t.expand)
	expand4(t.expand)
	expand8(t.expand)
	Generate()
}
