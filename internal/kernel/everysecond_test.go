package kernel

import (
	"math/rand/v2"
	"testing"
)

func TestEverySecondEqualsItsTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		checkEverySecond[uint8](t, n)
		checkEverySecond[uint32](t, n)
		checkEverySecond[uint64](t, n)
		checkEverySecond[uint32](t, r.IntN(2000))
	}
	wantPanic(t, "short src", func() { EverySecond(make([]uint32, 8), make([]uint32, 14)) })
}

func checkEverySecond[T uint8 | uint32 | uint64](t *testing.T, n int) {
	t.Helper()
	src, intactSrc := guarded[T](max(0, 2*n-1), 0)
	for i := range src {
		src[i] = T(i)
	}
	got, intact := guarded[T](n, 9)
	want := make([]T, n)
	everySecondGo(want, src)
	EverySecond(got, src)
	wantSame(t, got, want)
	intact(t)
	intactSrc(t)
}

func BenchmarkEverySecond(b *testing.B) {
	dst, src := make([]float32, 208), make([]float32, 416)
	b.SetBytes(416 * 4)
	for b.Loop() {
		EverySecond(dst, src)
	}
}
