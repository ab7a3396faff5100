package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
)

// normal is a matrix of int8, or of uint8 around 128, of a normal distribution.
func normal(r *rand.Rand, k, n int, deviation float64, signed bool) Matrix[byte] {
	m := Rows(make([]byte, k*n), n)
	for i := range m.Data {
		m.Data[i] = byte(int8(max(-128, min(127, r.NormFloat64()*deviation)))) ^ flip(signed)
	}
	return m
}

// Pairs fit, and weights plus excess are those of the matrix.
func TestPairing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range []struct {
		k, n      int
		deviation float64
		pairs     bool
	}{{768, 100, 36, true}, {2100, 70, 30, true}, {77, 200, 36, true}, {3, 5, 10, true}, {64, 1, 60, true},
		{300, 300, 70, false}, {0, 7, 1, true}} {
		b := normal(r, s.k, s.n, s.deviation, true)
		m := packPairs(workers(2), b, s.k, s.n, true)
		if (m.pairs != nil) != s.pairs {
			t.Errorf("%+v: paired: %v", s, m.pairs != nil)
		}
		if m.pairs == nil {
			continue
		}
		for j := range s.n {
			for k := 0; k < s.k; k += 2 {
				if x, y := m.packed(k, j), m.packed(k+1, j); !kernel.PairFits(x, y) {
					t.Fatalf("%+v: weights %d and %d at %d of column %d", s, x, y, k, j)
				}
			}
			for k := range s.k {
				from := k/kernel.PairWindow*kernel.PairWindow + int(m.pairs.order[j/pairGroup*m.orderSize()+k])
				if got, want := m.packed(k, j)+m.excess(k, j), int8(b.Data[from*s.n+j]); got != want {
					t.Fatalf("%+v: weight %d of column %d is %d, want %d", s, k, j, got, want)
				}
			}
		}
	}
}

// packed is an element of the packed matrix; those after the last row are 0.
func (m *PackedInt) packed(k, j int) int8 {
	data, _ := m.block(around(k, intDepth, m.k), j/kernel.GemmPanel*kernel.GemmPanel)
	at := k % intDepth
	return int8(data[at/kernel.GemmQuad*quadBytes+j%kernel.GemmPanel*kernel.GemmQuad+at%kernel.GemmQuad])
}

func (m *PackedInt) excess(k, j int) (x int8) {
	at := m.pairs.of(m.panelAt(k/intDepth*intDepth, j))
	for e := at.from; e < at.to; e++ {
		if int(m.pairs.quads[e]) == k%intDepth/kernel.GemmQuad {
			x += int8(m.pairs.excess[e*quadBytes+j%kernel.GemmPanel*kernel.GemmQuad+k%kernel.GemmQuad])
		}
	}
	return x
}

// Products with reordered weights, some of which have excess, are exact.
func TestPairsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	excess := 0
	for range 30 {
		s := newIntSample(r, 1+r.IntN(60), 1+r.IntN(200), r.IntN(1500))
		s.B = normal(r, s.K, s.N, 30+20*r.Float64(), s.BSigned)
		m := packPairs(workers(1), s.B, s.K, s.N, s.BSigned)
		if m.pairs == nil {
			continue
		}
		excess += len(m.pairs.quads)
		s.Packed = m
		for _, form := range []int{1, 3} {
			if !slices.Equal(s.run(workers(1+form%3), form), s.want()) {
				t.Errorf("%+v, %s: wrong product", s.Shape, intForms[form].name)
			}
		}
	}
	if excess == 0 {
		t.Error("no sample has excess")
	}
}

func TestTooLarge(t *testing.T) {
	for x := -128; x < 128; x++ {
		for y := -128; y < 128; y++ {
			var column [kernel.PairWindow]byte
			column[9], column[31] = byte(y), byte(y)
			want := uint32(0)
			if !kernel.PairFits(int8(x), int8(y)) {
				want = 1<<9 | 1<<31
			}
			if got := tooLarge(&column, int8(x)); isLarge(x) && got != want {
				t.Fatalf("with weights %d of column %v: %#x, want %#x", x, y, got, want)
			}
			if !isLarge(x) && !isLarge(y) && want != 0 {
				t.Fatalf("weights %d and %d do not fit and are not large", x, y)
			}
		}
	}
}

func isLarge(x int) bool { return x > 63 || x < -64 }
