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
		peaks := make([]uint32, len(want))
		BlockPeaks(peaks, x, size)
		for b, got := range peaks {
			if want := absMaxBitsGo(x[b*size:][:size]); got != want {
				t.Fatalf("peak of block %d is %#x, want %#x", b, got, want)
			}
		}
		got := slices.Clone(want)
		c.SearchScale(got, x, size)
		inverse := make([]float32, len(want))
		for b, m := range want {
			if m > 0 {
				want[b] = c.searchScaleGo(x[b*size:][:size], int(m))
				inverse[b] = 1 / scales[m]
			}
		}
		wantSame(t, got, want)
		indices, check := guarded[byte](len(x), 0x5a)
		c.Nearest(indices, x, inverse, size)
		check(t)
		for i, v := range x {
			if want := c.nearest(v * inverse[i/size]); indices[i] != want {
				t.Fatalf("index %d of %d is %d, want %d", i, len(x), indices[i], want)
			}
		}
	})
}

// The scale has about the least error of all that are tried, also where the smallest or largest one is among these.
func TestCodebookErrors(t *testing.T) {
	for _, m := range []byte{0, 1, 2, 124, 126, 127} {
		testCodebookErrors(t, m)
	}
}

// testCodebookErrors has blocks of magnitude all, random ones with 0.
func testCodebookErrors(t *testing.T, all byte) {
	r := rand.New(rand.NewPCG(3, 4))
	c, entries, scales := codebookOf(r, 16)
	magnitudes, x := blocksOf(r, 400, 8, scales)
	for b, m := range magnitudes {
		if all == 0 || m == 0 {
			continue
		}
		magnitudes[b] = all
		most := float32(0)
		for _, v := range x[b*8:][:8] {
			most = max(most, v, -v)
		}
		for i := range 8 {
			x[b*8+i] *= scales[all] / most
		}
	}
	errorOf := func(block []float32, s float32) (sum float64) {
		for _, v := range block {
			least := math.Inf(1)
			for _, e := range entries {
				least = min(least, math.Abs(float64(v-e*s)))
			}
			sum += least * least
		}
		return sum
	}
	got := slices.Clone(magnitudes)
	c.SearchScale(got, x, 8)
	found, least, first := 0., 0., 0.
	for b, m := range magnitudes {
		block, best := x[b*8:][:8], math.Inf(1)
		if m == 0 {
			continue
		}
		for i := max(1, int(m)-StepsDown); i <= min(127, int(m)+StepsUp); i++ {
			best = min(best, errorOf(block, scales[i]), errorOf(block, -scales[i]))
		}
		s := scales[got[b]&127]
		if got[b] > 127 {
			s = -s
		}
		found, least, first = found+errorOf(block, s), least+best, first+errorOf(block, scales[m])
	}
	if found > 1.02*least || found > 0.9*first {
		t.Errorf("magnitude %d: squared error %g, least %g, %g of the first scales", all, found, least, first)
	}
}

func BenchmarkCodebook(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	c, _, scales := codebookOf(r, 16)
	magnitudes, x := blocksOf(r, 1<<13, 8, scales)
	b.Run("SearchScale", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		got := make([]byte, len(magnitudes))
		for b.Loop() {
			copy(got, magnitudes)
			c.SearchScale(got, x, 8)
		}
	})
	b.Run("Nearest", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		inverse, indices := make([]float32, len(magnitudes)), make([]byte, len(x))
		for b.Loop() {
			c.Nearest(indices, x, inverse, 8)
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

// With feedback, errors that are summed in one output cancel, the squared error is about that without, and zeros have the nearest entry.
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
	c.Nearest(nearest, x, b.Inverse, 8)
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
	for name, output := range map[string]func(i int) int{"rows": func(i int) int { return i % outputs }, "runs": func(i int) int { return i / inputs }} {
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
			t.Errorf("%s: squared errors %g, sums of errors %g; %g and %g without feedback", name, square, sums, was, wasSums)
		}
	}
}
