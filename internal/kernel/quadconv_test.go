package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// quadRequantization has parameters of whole blocks; some sums are far from the levels.
func quadRequantization(r *rand.Rand, n int, signed bool) Requantization {
	q := Requantization{random(r, n), random(r, n), int32(r.IntN(100)), IntRange{3, 200}}
	if signed {
		q.Zero, q.Levels = -q.Zero, IntRange{-128, 100}
	}
	for i := range q.Scale {
		q.Scale[i] *= []float32{1e-3, 1e-6, 1e-8, 1e-2}[r.IntN(4)]
	}
	return q
}

func FuzzQuadConv(f *testing.F) {
	for n := range uint8(80) {
		f.Add(uint64(n), n*3, n*7, n/2%4, n%4 < 2)
	}
	f.Fuzz(func(t *testing.T, seed uint64, channels, positions, runs uint8, signed bool) {
		r := rand.New(rand.NewPCG(seed, 8))
		n, places, step := 1+int(channels), int(positions%80), r.IntN(100)
		q := &QuadConv{Channels: n, Runs: make([]Run, 1+runs%4), First: integers(r, roundTo(n, QuadBlock))}
		last, quads, least := 0, 0, 1+40*int64(seed%2) // long runs are multiplied in tiles
		for i := range q.Runs {
			q.Runs[i] = Run{int64(r.IntN(300)), least + int64(r.IntN(20))}
			last, quads = max(last, int(q.Runs[i].At+GemmQuad*q.Runs[i].Quads)), quads+int(q.Runs[i].Quads)
		}
		q.W, q.Q = randomBytes(r, roundTo(n, GemmPanel)*GemmQuad*quads), quadRequantization(r, len(q.First), signed)
		lo := r.IntN(n) / GemmPanel * GemmPanel
		hi, to := lo+1+r.IntN(n-lo), n+r.IntN(9)
		x, got := randomBytes(r, max(places-1, 0)*step+last), randomBytes(r, places*to)
		want := slices.Clone(got)
		q.Slide(got, to, x, places, step, lo, hi)
		q.plain(want, to, x, places, step, lo, hi)
		if !slices.Equal(got, want) {
			t.Errorf("channels %d to %d, %d positions, %d apart, runs %v: got %v, want %v", lo, hi, places, step,
				q.Runs, got, want)
		}
	})
}

func roundTo(n, step int) int { return (n + step - 1) / step * step }

func FuzzQuadWindow(f *testing.F) {
	for n := range uint8(200) {
		f.Add(uint64(n), n, n%11, n%12, n%2 == 0)
	}
	for n := uint8(1); n <= QuadBlock; n *= 2 { // channels of which a block is a multiple
		for seed := range uint64(8) {
			f.Add(seed, n-1, uint8(11+seed), uint8(9), seed%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, wide, positions, taps uint8, signed bool) {
		r := rand.New(rand.NewPCG(seed, 9))
		n, places, step := 1+int(wide), int(positions%20), r.IntN(300)
		together := 1 + r.IntN(5)
		all := roundTo(together*n, QuadBlock) // those beyond the positions are arbitrary
		if r.IntN(2) == 0 {
			step = n // windows that read adjacent bytes
		}
		q := &QuadWindow{Channels: n, Positions: together, At: make([]int64, 4+taps&^3%16), First: integers(r, all),
			Q: quadRequantization(r, all, signed)}
		last := 0
		for i := range q.At {
			q.At[i] = int64(r.IntN(500))
			last = max(last, int(q.At[i]))
		}
		q.W = make([]byte, all*len(q.At))
		for c := range all {
			for tap := range q.At {
				w := byte(r.Uint32())
				if c >= n && c < together*n {
					w = q.W[QuadWeight(c%n, tap, len(q.At))]
				}
				q.W[QuadWeight(c, tap, len(q.At))] = w
			}
			if c >= n && c < together*n {
				from, to := QuadLane(c%n), QuadLane(c)
				q.First[to], q.Q.Scale[to], q.Q.Bias[to] = q.First[from], q.Q.Scale[from], q.Q.Bias[from]
			}
		}
		x, got := randomBytes(r, max(places-1, 0)*step+last+n+QuadBlock), randomBytes(r, places*n+1)
		want := slices.Clone(got)
		q.Slide(got, x, places, step)
		q.plain(want, x, places, step)
		if !slices.Equal(got, want) {
			t.Errorf("%d channels, %d of %d positions together, %d apart, taps %v: got %v, want %v", n, together,
				places, step, q.At, got, want)
		}
	})
}
