package calibrate

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Channels accumulates means and variances of values by channel (axis 1), in two numbers per channel.
type Channels struct {
	seen map[string]*channels
}

type channels struct {
	sums, squares []float64
	count         int64 // of values per channel
}

// Visit adds a value of one run.
func (c *Channels) Visit(name string, a *ir.Array) {
	if a.Kind != ir.Dense || a.DType != ir.Float || len(a.Shape) < 2 || a.Elems() == 0 {
		return
	}
	if c.seen == nil {
		c.seen = map[string]*channels{}
	}
	n := int(a.Shape[1])
	s := c.seen[name]
	if s == nil {
		s = &channels{sums: make([]float64, n), squares: make([]float64, n)}
		c.seen[name] = s
	}
	if len(s.sums) == n { // otherwise the number of channels differs between runs
		s.add(ir.View[float32](a), int(a.Shape[0]))
	}
}

func (s *channels) add(x []float32, batch int) {
	size := len(x) / len(s.sums) / batch
	for at := 0; at < len(x); at += size {
		i := at / size % len(s.sums)
		// Blocks of one channel are contiguous: axes after it are.
		s.sums[i] += kernel.ReduceSum(x[at : at+size])
		s.squares[i] += kernel.ReduceSumSquare(x[at : at+size])
	}
	s.count += int64(size * batch)
}

// Means are the channel means of a value, nil if unknown.
func (c *Channels) Means(name string) []float64 {
	s := c.seen[name]
	if s == nil {
		return nil
	}
	means := make([]float64, len(s.sums))
	for i, sum := range s.sums {
		means[i] = sum / float64(s.count)
	}
	return means
}

// Variance is the mean channel variance of a value, 0 if unknown.
func (c *Channels) Variance(name string) float64 {
	total, means := 0.0, c.Means(name)
	for i, mean := range means {
		total += max(0, c.seen[name].squares[i]/float64(c.seen[name].count)-float64(mean*mean))
	}
	return total / float64(max(1, len(means)))
}
