//go:build linux

package kernel

import (
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// beforeGuard returns n elements directly before a page that cannot be read.
func beforeGuard(t *testing.T, n int) []uint16 {
	t.Helper()
	page := syscall.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	if err := syscall.Mprotect(all[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&all[0])), page/2)[page/2-n:]
}

// PackHalves does not read past its input, of which a row of a part of the panel may be the end.
func TestPackHalvesReadsItsInputAlone(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	r := rand.New(rand.NewPCG(1, 1))
	for _, stride := range []int{1, 2} {
		for n := 1; n <= GemmPanel; n++ {
			for _, from := range []int{1, 7, 16, 33} {
				const rows = 6
				x := beforeGuard(t, (rows-1)*from+(n-1)*stride+1)
				copy(x, halfPatterns(r, len(x)))
				got, want := make([]float32, rows*GemmPanel), make([]float32, rows*GemmPanel)
				PackHalves(got, x, rows, GemmPanel, from, 0, n, stride, false)
				packHalvesGo(want, x, rows, GemmPanel, from, 0, n, stride, false)
				if !sameBits(got, want) {
					t.Errorf("%d elements of rows %d apart, stride %d: got %v, want %v", n, from, stride, got, want)
				}
			}
		}
	}
}
