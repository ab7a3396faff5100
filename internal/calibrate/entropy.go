package calibrate

import "math"

// leastDivergence is the clipping range of minimum Kullback-Leibler divergence between the distribution of the values
// and that of the quantized values (Migacz: 8-bit Inference with TensorRT, GTC 2017). Values of both signs are counted
// by magnitude, in half as many levels.
func (h *histogram) leastDivergence(steps int) Range {
	levels := (steps + 1) / 2
	// Values of one sign have all levels on their side.
	if h.low == 0 || h.top == 0 {
		levels = steps + 1
	}
	// 16-bit types have more levels than there are bins; a level needs several bins for its distribution to show.
	levels = min(levels, half/4)
	p := make([]float64, half)
	for i := range p {
		p[i] = float64(h.counts[half+i] + h.counts[half-1-i])
	}
	// The bins next to zero have most values after a Relu, which no range changes.
	p[0] = p[1] // zero is a quantization level for any range
	last := half
	for last > levels && p[last-1] == 0 {
		last--
	}
	best, least := last, math.Inf(1)
	q := make([]float64, half)
	for n := last; n >= levels; n -= max(1, (last-levels)/candidates) {
		if d := divergence(p[:last], q[:n], levels); d < least {
			best, least = n, d
		}
	}
	end := float64(best) * h.width
	return h.within(Range{-end, end})
}

// divergence is the Kullback-Leibler divergence of p, with its tail after len(q) clipped into the last bin, from p
// quantized to the given number of levels, each of which is spread over its non-empty bins. q is scratch memory for the
// quantized p.
func divergence(p, q []float64, levels int) float64 {
	n := len(q)
	tail, total := 0.0, 0.0
	for i, c := range p {
		total += c
		if i >= n {
			tail += c
		}
	}
	for l := range levels {
		from, to := l*n/levels, (l+1)*n/levels
		spread(p[from:to], q[from:to])
	}
	d, kept := 0.0, total-tail
	for i := range q {
		c := p[i]
		if i == n-1 {
			c += tail
		}
		// 0·log 0 is 0.
		if c == 0 {
			continue
		}
		d += float64(c / total * math.Log(c/total*kept/max(q[i], 1))) // the tail may be in an otherwise empty bin
	}
	return d
}

// spread replaces each non-zero count of p by the mean of the non-zero counts.
func spread(p, q []float64) {
	sum, some := 0.0, 0.0
	for _, c := range p {
		if c > 0 {
			sum += c
			some++
		}
	}
	for i, c := range p {
		q[i] = 0
		if c > 0 {
			q[i] = sum / some
		}
	}
}
