package gemm

import (
	"math/rand/v2"
	"testing"
)

func TestPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		s := Shape{1 + r.IntN(150), 1 + r.IntN(100), r.IntN(80)}
		a, b := integers(matrix(r, s.M, s.K)), integers(matrix(r, s.K, s.N))
		c := make([]int64, s.M*s.N)
		Plain(workers(1+r.IntN(3)), s, a, b, c, s.N)
		for at, got := range c {
			var want int64
			for k := range s.K {
				want += a.Data[at/s.N*a.Row+k*a.Col] * b.Data[k*b.Row+at%s.N*b.Col]
			}
			if got != want {
				t.Fatalf("%v: element %d is %d, want %d", s, at, got, want)
			}
		}
	}
}

func integers(m Matrix[float32]) Matrix[int64] {
	x := make([]int64, len(m.Data))
	for i, v := range m.Data {
		x[i] = int64(v * 1e6)
	}
	return Matrix[int64]{x, m.Row, m.Col}
}
