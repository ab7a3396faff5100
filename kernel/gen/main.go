// Command gen writes the AVX2 assembly of package kernel, ../avx2_amd64.s, and the Go
// declarations for it, ../avx2_amd64.go. It is a module of its own so that nobody who builds
// mcompress needs avo; `go generate ./kernel` runs it.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64,!noasm")
	cpuid()
	absMaxBits()
	colAbsMaxBits(1)
	colAbsMaxBits(4)
	minMax()
	colMinMax(1)
	colMinMax(4)
	quantize()
	quantizeCols("quantizeColsAVX2", false)
	quantizeCols("quantizeColsZeroAVX2", true)
	dequantize()
	dequantizeCols("dequantizeColsAVX2", false)
	dequantizeCols("dequantizeColsZeroAVX2", true)
	f16FromF32()
	f32FromF16()
	bf16FromF32()
	f32FromBF16()
	filterRange()
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
	compress1()
	compress2()
	compress4()
	compress8()
	expand1()
	expand2()
	expand4()
	expand8()
	Generate()
}
