// Package kernel holds the inner loops over numbers: ranges, quantization, conversion, ranking, transposition and the
// building blocks of sparse forms; matrix products and vector mathematics.
//
// Inputs and outputs are slices. It must not know tensors, files, models, goroutines or options, so that every loop can
// be fuzzed alone. Results do not depend on the CPU: each kernel has a plain Go twin (suffix Go) that the vector code
// in the _amd64.s files equals bit for bit (except GemmFloat, GemvFloat and SparseRows.Multiply), and `-tags noasm`
// builds the twins alone. Wrong lengths are bugs of the caller and panic.
package kernel

//go:generate go -C gen run . -family activation -pkg kernel -out ../activation_amd64.s -stubs ../activation_amd64.go
//go:generate go -C gen run . -family amx -pkg kernel -out ../amx_amd64.s -stubs ../amx_amd64.go
//go:generate go -C gen run . -pkg kernel -out ../avx2_amd64.s -stubs ../avx2_amd64.go
//go:generate go -C gen run . -family bits -pkg kernel -out ../bits_amd64.s -stubs ../bits_amd64.go
//go:generate go -C gen run . -family blocks -pkg kernel -out ../blocks_amd64.s -stubs ../blocks_amd64.go
//go:generate go -C gen run . -family codebook -pkg kernel -out ../codebook_amd64.s -stubs ../codebook_amd64.go
//go:generate go -C gen run . -family conv -pkg kernel -out ../conv_amd64.s -stubs ../conv_amd64.go
//go:generate go -C gen run . -family depthwise -pkg kernel -out ../depthwise_amd64.s -stubs ../depthwise_amd64.go
//go:generate go -C gen run . -family gemm -pkg kernel -out ../gemm_amd64.s -stubs ../gemm_amd64.go
//go:generate go -C gen run . -family gemmfinish -pkg kernel -out ../gemmfinish_amd64.s -stubs ../gemmfinish_amd64.go
//go:generate go -C gen run . -family half -pkg kernel -out ../half_amd64.s -stubs ../half_amd64.go
//go:generate go -C gen run . -family huffman -pkg kernel -out ../huffman_amd64.s -stubs ../huffman_amd64.go
//go:generate go -C gen run . -family math -pkg kernel -out ../math_amd64.s -stubs ../math_amd64.go
//go:generate go -C gen run . -family planes -pkg kernel -out ../planes_amd64.s -stubs ../planes_amd64.go
//go:generate go -C gen run . -family quad -pkg kernel -out ../quad_amd64.s -stubs ../quad_amd64.go
//go:generate go -C gen run . -family round -pkg kernel -out ../round_amd64.s -stubs ../round_amd64.go
//go:generate go -C gen run . -family small -pkg kernel -out ../small_amd64.s -stubs ../small_amd64.go
//go:generate go -C gen run . -family spmm -pkg kernel -out ../spmm_amd64.s -stubs ../spmm_amd64.go
//go:generate go -C gen run . -family storage -pkg kernel -out ../storage_amd64.s -stubs ../storage_amd64.go

import "fmt"

// checkLen panics unless a slice called name has the length want.
func checkLen(name string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("kernel: length of %s is %d, want %d", name, got, want))
	}
}

// checkRows panics unless n elements are whole rows of cols columns.
func checkRows(n, cols int) {
	if n == 0 || (cols > 0 && n%cols == 0) {
		return
	}
	panic(fmt.Sprintf("kernel: %d elements are not whole rows of %d columns", n, cols))
}
