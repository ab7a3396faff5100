// Package avx512 tests the kernels for AVX-512 and VNNI on a computer without them: make test-avx512 runs the tests of
// the packages that have or use such kernels on Linux in Bochs, an emulator of a CPU with both. go test alone skips it.
package avx512
