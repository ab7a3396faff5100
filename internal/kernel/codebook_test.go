package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// codebookOf is a codebook of k random entries with its limits, and scales of equal ratios.
func codebookOf(r *rand.Rand, k int) (c *Codebook, entries, scales []float32) {
	entries, limits, scales := make([]float32, k), make([]float32, k), make([]float32, 128)
	for i := range entries {
		entries[i] = r.Float32()*2 - 1
	}
	slices.Sort(entries)
	for i := range limits[1:] {
		limits[i] = entries[i]/2 + entries[i+1]/2
	}
	for i := range scales {
		scales[i] = float32(math.Exp2(float64(i-127) / 8))
	}
	return NewCodebook(entries, limits, scales), entries, scales
}

// blocksOf are blocks of numbers with the magnitudes of their scales.
func blocksOf(r *rand.Rand, n, block int, scales []float32) (magnitudes []byte, x []float32) {
	magnitudes, x = make([]byte, n), gaussian(r, n*block)
	for b := range magnitudes {
		s, most := float32(math.Exp2(-float64(r.IntN(20)))), float32(0)
		if b%13 == 0 {
			s = 0
		}
		for i := range block {
			x[b*block+i] *= s / 4
			most = max(most, x[b*block+i], -x[b*block+i])
		}
		for magnitudes[b] < maxMagnitude && scales[magnitudes[b]] < most {
			magnitudes[b]++
		}
	}
	return magnitudes, x
}

func FuzzCodebook(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(seed), uint8(seed*3), uint8(seed*5))
	}
	f.Fuzz(func(t *testing.T, seed uint64, k, n, block uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, _, scales := codebookOf(r, 1+int(k)%CodebookEntries)
		size := 1 + int(block)%40
		if block%2 == 0 {
			size = 8 + int(block)%4*8
		}
		want, x := blocksOf(r, int(n), size, scales)
		got, limits := make([]byte, len(want)), octaveLimits(scales)
		BlockMagnitudes(got, x, size, &limits)
		for b, got := range got {
			if want := magnitudeOf(absMaxBitsGo(x[b*size:][:size]), &limits); got != want {
				t.Fatalf("magnitude of block %d is %d, want %d", b, got, want)
			}
		}
		for b := 0; b < len(want); b += 7 { // numbers above the scale
			want[b] = byte(r.IntN(1 + maxMagnitude))
		}
		copy(got, want)
		c.SearchScale(got, x, size)
		for b, m := range want {
			if m > 0 {
				want[b] = c.scales.best(x[b*size:][:size], int(m))
			}
		}
		wantSame(t, got, want)
		indices, check := guarded[byte](len(x), 0x5a)
		c.Nearest(indices, x, got, size)
		check(t)
		for i, v := range x {
			if want := c.nearest.entry(v * c.nearest.inverse[got[i/size]]); indices[i] != want {
				t.Fatalf("index %d of %d is %d, want %d", i, len(x), indices[i], want)
			}
		}
	})
}

// octaveLimits are those between the scales of an octave, and the next one's first.
func octaveLimits(scales []float32) (limits [octaveSteps]uint32) {
	for i := range limits {
		limits[i] = math.Float32bits(scales[maxMagnitude-octaveSteps+i]+
			scales[maxMagnitude-octaveSteps+i+1]) & mantissaBits
	}
	return limits
}

func TestBlockMagnitudes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	_, _, scales := codebookOf(r, 16)
	limits, x := octaveLimits(scales), make([]float32, 8000)
	for i := range x {
		x[i] = float32(math.Exp2(-17*r.Float64())) * float32(1-i%2*2)
	}
	got := make([]byte, len(x)/8)
	BlockMagnitudes(got, x, 8, &limits)
	for b, m := range got {
		most, want := math.Float32frombits(absMaxBitsGo(x[b*8:][:8])), 0
		for want < maxMagnitude && most > (max(scales[want], scales[1]/2)+scales[want+1])/2 {
			want++
		}
		if int(m) != want {
			t.Errorf("magnitude of %g is %d, want %d", most, m, want)
		}
	}
	x = []float32{0, scales[1] * 0.45, -scales[1] * 0.6, scales[1] * 1.01, 1, -1.2, 1e30}
	got = got[:len(x)]
	BlockMagnitudes(got, x, 1, &limits)
	wantSame(t, got, []byte{0, 0, 1, 1, 127, 127, 127})
}

// Entries are the nearest ones but for the rounding of numbers to 16 bits, also where many limits are in one cell.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{1, 2, 5, 16} {
		c, entries, scales := codebookOf(r, k)
		if k == 5 {
			for i := range entries {
				entries[i] = float32(i+1) / 500
			}
			c = NewCodebook(entries, []float32{.003, .005, .007, .009, 0}, scales)
		}
		x, indices := make([]float32, 4096), make([]byte, 4096)
		for i := range x {
			x[i] = (r.Float32()*2.2 - 1.1) * scales[100]
			if i%4 == 0 {
				x[i] /= 50
			}
		}
		bytes := make([]byte, len(x)/8)
		for i := range bytes {
			bytes[i] = byte(100 + i%2*scaleSign)
		}
		c.Nearest(indices, x, bytes, 8)
		for i, v := range x {
			y := v / scales[100] * float32(1-i/8%2*2)
			distance := func(e float32) float64 { return math.Abs(float64(y - e)) }
			for _, e := range entries {
				if distance(entries[indices[i]]) > distance(e)+2./unitStep16 {
					t.Fatalf("%d entries: %g has %g, nearer is %g", k, y, entries[indices[i]], e)
				}
			}
		}
	}
}

// Squared errors are those of the nearest entries, with any number of them in a cell; errors above 110 may be smaller.
func TestSearchScalePairs(t *testing.T) {
	for pairs, entries := range map[int][]int{
		1: {-180, -150, -124, -100, -80, -58, -34, -12, 12, 36, 56, 80, 106, 144, 176, 222},
		2: {-200, -150, -30, -22, -8, 0, 8, 24, 30, 222},
		4: {0, 2, 4, 6, 8, 10, 12},
	} {
		x := make([]float32, len(entries))
		for i, e := range entries {
			x[i] = float32(e) / unitStep
		}
		_, _, scales := codebookOf(rand.New(rand.NewPCG(1, 2)), 1)
		c := NewCodebook(x, x, scales)
		if len(c.scales.pairs) != pairs {
			t.Errorf("%d pairs of entries in a cell, want %d", len(c.scales.pairs), pairs)
		}
		for i := range 512 {
			m, sign, want := i/2, i%2, math.MaxInt
			for _, e := range entries {
				want = min(want, max(m-e*(1-2*sign), e*(1-2*sign)-m))
			}
			if got := int(c.scales.square(byte(m), sign)); got != want*want &&
				(want <= 110 || got <= 110*110 || got > want*want) {
				t.Errorf("%d pairs: squared error of %d with sign %d is %d, want %d", pairs, m, sign, got, want*want)
			}
		}
	}
}

func BenchmarkCodebook(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	_, _, scales := codebookOf(r, 16)
	entries, limits := make([]float32, 16), make([]float32, 16)
	for i := range entries {
		entries[i], limits[i] = float32(2*i)/15-1, float32(2*i+1)/15-1
	}
	c := NewCodebook(entries, limits, scales)
	magnitudes, x := blocksOf(r, 1<<12, 8, scales)
	b.Run("SearchScale", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		got := make([]byte, len(magnitudes))
		for b.Loop() {
			copy(got, magnitudes)
			c.SearchScale(got, x, 8)
		}
	})
	b.Run("BlockMagnitudes", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		got, limits := make([]byte, len(magnitudes)), octaveLimits(scales)
		for b.Loop() {
			BlockMagnitudes(got, x, 8, &limits)
		}
	})
	b.Run("Nearest", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		indices := make([]byte, len(x))
		for b.Loop() {
			c.Nearest(indices, x, magnitudes, 8)
		}
	})
}

// blocksFor are the scales of magnitudes.
func blocksFor(x []float32, magnitudes []byte, scales []float32, size int) Blocks {
	b := Blocks{X: x, Scales: make([]float32, len(magnitudes)), Inverse: make([]float32, len(magnitudes)), Size: size}
	for i, m := range magnitudes {
		if m > 0 {
			b.Scales[i] = scales[m] * float32(1-i%2*2) // of both signs
			b.Inverse[i] = 1 / b.Scales[i]
		}
	}
	return b
}

func FuzzBalance(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(seed), uint8(seed*3), uint8(seed*5), uint8(seed*7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, k, n, block, left uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, _, scales := codebookOf(r, 1+int(k)%CodebookEntries)
		size := 1 + int(block)%40
		if block%2 == 0 {
			size = 8 + int(block)%4*8
		}
		magnitudes, x := blocksOf(r, int(n), size, scales)
		b, parts := blocksFor(x, magnitudes, scales, size), 1+int(left)%20
		got, check := guarded[byte](len(x), 0x5a)
		want, carry := make([]byte, len(x)), gaussian(r, len(x))
		sums := slices.Clone(carry)
		c.BalanceRow(got, b, sums, parts)
		check(t)
		for i, v := range x {
			s, part := i/size, -1/float32(parts)
			want[i] = c.balance(v, b.Scales[s], b.Inverse[s], float32(carry[i]*part), &carry[i])
		}
		if !slices.Equal(got, want) || !slices.Equal(sums, carry) {
			t.Fatalf("rows: indices %d, want %d; errors %v, want %v", got, want, sums, carry)
		}
		run := c.BalanceRun(got, b, 0.01)
		check(t)
		sum := float32(0.01)
		for i := range magnitudes {
			for from := i * size; from < (i+1)*size; from += FeedbackRun {
				var e [FeedbackRun]float32
				for j := from; j < min(from+FeedbackRun, (i+1)*size); j++ {
					want[j] = c.balance(x[j], b.Scales[i], b.Inverse[i], sum/-FeedbackRun, &e[j-from])
				}
				sum += ((e[0] + e[4]) + (e[2] + e[6])) + ((e[1] + e[5]) + (e[3] + e[7]))
			}
		}
		if !slices.Equal(got, want) || run != sum {
			t.Fatalf("run: indices %d, want %d; error %v, want %v", got, want, run, sum)
		}
	})
}

// With feedback, errors that are summed in one output cancel, the squared error is about that without, and zeros have
// the nearest entry.
func TestBalanceCancelsErrors(t *testing.T) {
	const outputs, inputs = 16, 256
	r := rand.New(rand.NewPCG(7, 8))
	c, entries, scales := codebookOf(r, 16)
	magnitudes, x := blocksOf(r, outputs*inputs/8, 8, scales)
	for i := range x {
		if i%5 == 0 {
			x[i] = 0
		}
	}
	b := blocksFor(x, magnitudes, scales, 8)
	nearest := make([]byte, len(x))
	bytes := slices.Clone(magnitudes)
	for i := range bytes {
		bytes[i] |= byte(i % 2 * scaleSign)
	}
	c.Nearest(nearest, x, bytes, 8)
	measure := func(indices []byte, output func(i int) int) (square, sums float64) {
		var sum [outputs]float64
		for i, at := range indices {
			e := float64(entries[at]*b.Scales[i/8] - x[i])
			square, sum[output(i)] = square+e*e, sum[output(i)]+e
			if x[i] == 0 && at != nearest[i] {
				t.Errorf("element %d, 0, has entry %d, without feedback %d", i, at, nearest[i])
			}
		}
		for _, s := range sum {
			sums += s * s
		}
		return square, sums
	}
	for name, output := range map[string]func(i int) int{"rows": func(i int) int { return i % outputs },
		"runs": func(i int) int { return i / inputs }} {
		got, carry := make([]byte, len(x)), make([]float32, outputs)
		part := func(from, n int) Blocks {
			return Blocks{x[from:][:n], b.Scales[from/8:][:n/8], b.Inverse[from/8:][:n/8], 8}
		}
		for i := range inputs {
			if name == "rows" {
				c.BalanceRow(got[i*outputs:][:outputs], part(i*outputs, outputs), carry, min(FeedbackRun, inputs-i))
			}
		}
		for i := range outputs {
			if name == "runs" {
				carry[i] = c.BalanceRun(got[i*inputs:][:inputs], part(i*inputs, inputs), 0)
			}
		}
		square, sums := measure(got, output)
		if was, wasSums := measure(nearest, output); square > 1.25*was || sums > wasSums/4 {
			t.Errorf("%s: squared errors %g, sums of errors %g; %g and %g without feedback", name, square, sums, was,
				wasSums)
		}
	}
}
