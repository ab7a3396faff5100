package spec

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A grid is the values that stored elements can have, as an encoding knows them. The bound of a weight is derived from
// it (docs/bounds.md):
//
//  1. Rounding. Restored with all stored values at the lowest and at the highest one, the weight shows the range
//     [lo, hi] of the scale and zero point that a reader uses for each element. The restored element is within a
//     rounding of the element, clamped to that range. This holds for any scale, so it does not matter how it was found;
//     values, scales and zero points that do not belong together break it.
//  2. Scales. The range of a scale reaches the largest magnitude of its elements, and not farther than its rule lets it.
//     Only where that magnitude is invisible beside that of the whole weight (dead channels) may zeros have scale 1.
type grid struct {
	low, high byte    // of stored bytes, all of whose values are the lowest or the highest one
	steps     float32 // between both; 0 for floats
	off       float32 // the maximum distance of a rounded value from the value, in steps
	// For floats in place of steps: half the spacing of values relative to the value, and near 0 relative to hi.
	ulp, tiny float32
	least     float32 // the smallest step, that of scales stored as float16
	searched  bool    // scales minimize an error; otherwise they cover the range of their elements
	free      bool    // the search may stretch ranges without limit
	panels    iter.Seq[panel]
}

// A panel is consecutive elements, rows × channels × inner, with a scale for each channel.
type panel struct{ rows, channels, inner int64 }

func (p panel) elems() int64 { return p.rows * p.channels * p.inner }

// Magnitudes of searched ranges, relative to the largest one of their elements. Each refit of a scale to its rounded
// values at least halves it, as |w/s - q| ≤ 1/2 gives w·q ≥ s·q²/2 unless q is 0; clipping factors are at least 0.56,
// one end of the range is at least half of it, and no search refits more than twice after another one.
//
// A search that preserves the norm has the scale Σw²/Σq·w of n elements. Σq·w is at least that of the largest element,
// whose q is at least a third of the largest one of the range, and Σw² at most n times its square.
const (
	leastRange = 1. / 64
	stretch    = 4
)

// bound is what w, stored by this grid, must hold.
func (g grid) bound(w *ir.Tensor, restore func(parts []*ir.Tensor) *ir.Tensor) *pass.Bound {
	return &pass.Bound{
		Of: w,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor {
			ts := []*ir.Tensor{restore(parts)}
			for _, b := range []byte{g.low, g.high} {
				with := slices.Clone(parts)
				// The same scales and zero points as the weight, and one byte for all values: the restored tensor shows an end
				// of each element's range as a reader would compute it.
				with[OutQuantized] = &ir.Tensor{Spec: parts[OutQuantized].Spec, Source: ir.Span{R: Repeated(b)}}
				ts = append(ts, restore(with))
			}
			return ts
		},
		New: func(_ context.Context, _ io.ReaderAt, note func(pass.Reason)) (func(x []float32, y [][]float32) string, error) {
			next, stop := iter.Pull(g.panels)
			// The state is of one evaluation: the bound of a weight may be evaluated again.
			relative, absolute := Rounding(w.DType)
			c := &gridCheck{grid: g, next: next, relative: relative}
			c.least = max(c.least, absolute)
			c.begin()
			return func(x []float32, y [][]float32) string {
				if len(x) == 0 {
					stop()
					if c.zeroed > 0 {
						note(pass.Reason{Code: pass.DeadChannels, Detail: fmt.Sprintf("%d of %d", c.zeroed, c.all)})
					}
					return c.end()
				}
				if why := c.rounding(x, y[0], y[1], y[2]); why != "" {
					return why
				}
				return c.scales(x, y[1], y[2])
			}, nil
		},
	}
}

// A Repeated is a payload of any size of one byte.
type Repeated byte

// ReadAt fills p.
func (b Repeated) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// Rounding is what rounds restored elements of a data type, and the arithmetic that quantizes them: relative to the
// magnitudes of their range, a few units in the last place, and absolute for subnormal numbers.
func Rounding(dt ir.DType) (relative, absolute float32) {
	switch dt {
	case ir.Float16:
		return 0x1.8p-10, 0x1p-24
	case ir.BFloat16:
		return 0x1.8p-7, 0x1p-133
	}
	return 0x1p-18, 0
}

// A gridCheck evaluates the bound of one weight.
type gridCheck struct {
	grid
	relative float32
	at       int64 // the next element

	next    func() (panel, bool)
	panel   panel
	done    int64    // elements of the panel
	peak    []uint32 // largest magnitudes of its channels
	lo, hi  []float32
	dead    float32 // the largest magnitude in a range that is wider than its rule lets it
	largest float32 // of all

	zeroed, all int64 // channels all of whose elements round to zero though some are not, and all channels
}

// rounding checks that y is x rounded, within lo and hi. Most elements are within the range: those need no clamping.
func (c *gridCheck) rounding(x, y, lo, hi []float32) string {
	y, lo, hi = y[:len(x)], lo[:len(x)], hi[:len(x)]
	step := float32(0)
	if c.steps > 0 {
		step = c.off / c.steps
	}
	for i, v := range x {
		// The common case without branches on the signs: this loop runs over all elements of a model in every run.
		if Magnitude(y[i]-v) <= Magnitude(hi[i]-lo[i])*step {
			continue
		}
		a, b := min(lo[i], hi[i]), max(lo[i], hi[i]) // a negative scale exchanges them
		v = min(max(v, a), b)
		if !(Magnitude(y[i]-v) <= b*step-a*step+Magnitude(v)*c.ulp+max(-a, b)*(c.tiny+c.relative)+c.least) {
			return fmt.Sprintf("element %d is %g, and stored as %g, with a range of values from %g to %g", c.at+int64(i), x[i],
				y[i], a, b)
		}
	}
	c.at += int64(len(x))
	return ""
}

// Magnitude is that of v, without a branch.
func Magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// begin continues with the next panel.
func (c *gridCheck) begin() {
	// Without a next one it is empty, which scales reports if elements follow.
	c.panel, _ = c.next()
	c.done = 0
	n := c.panel.channels
	c.peak, c.lo, c.hi = resized(c.peak, n), resized(c.lo, n), resized(c.hi, n)
	clear(c.peak)
}

// scales adds elements to the panels, and checks those that are complete.
func (c *gridCheck) scales(x, lo, hi []float32) string {
	for len(x) > 0 {
		p := c.panel
		if p.elems() == 0 {
			return "elements beyond its blocks"
		}
		n := min(int64(len(x)), p.elems()-c.done)
		c.observe(x[:n], lo[:n], hi[:n])
		x, lo, hi = x[n:], lo[n:], hi[n:]
		if c.done += n; c.done < p.elems() {
			continue
		}
		for j := range c.peak {
			if why := c.fits(j); why != "" {
				return why
			}
		}
		c.begin()
	}
	return ""
}

// observe adds elements of the panel.
func (c *gridCheck) observe(x, lo, hi []float32) {
	p := c.panel
	for i, at := int64(0), c.done; i < int64(len(x)); {
		row := at / p.inner
		j := row % p.channels
		if p.inner == 1 && j == 0 && int64(len(x))-i >= p.channels {
			n := (int64(len(x)) - i) / p.channels * p.channels
			kernel.ColAbsMaxBits(c.peak, x[i:i+n])
			copy(c.lo, lo[i:])
			copy(c.hi, hi[i:])
			i, at = i+n, at+n
			continue
		}
		n := min(p.inner-at%p.inner, int64(len(x))-i)
		c.peak[j] = max(c.peak[j], kernel.AbsMaxBits(x[i:i+n]))
		c.lo[j], c.hi[j] = lo[i], hi[i]
		i, at = i+n, at+n
	}
}

// fits checks the range of channel j of the panel.
func (c *gridCheck) fits(j int) string {
	peak := math.Float32frombits(c.peak[j])
	lo, hi := min(c.lo[j], c.hi[j]), max(c.lo[j], c.hi[j])
	reach, step := max(-lo, hi), float32(0)
	c.largest = max(c.largest, peak)
	if c.steps > 0 {
		step = hi/c.steps - lo/c.steps // the difference may exceed the range of float32
	}
	c.all++
	if zero := max(step/2, reach*c.tiny); peak > 0 && peak < zero {
		c.zeroed++
	}
	// A zero point is rounded: the range is shifted by up to half a step at either end.
	slack := step + reach*c.relative + c.least*max(1, c.steps)
	least, most := peak, peak
	if c.searched {
		least, most = peak*leastRange, peak*stretch*float32(c.panel.rows*c.panel.inner)
	}
	if c.free {
		most = float32(math.Inf(1))
	}
	switch {
	case !(reach+slack >= least):
		return fmt.Sprintf("a range of values from %g to %g for elements of magnitudes up to %g, before element %d", lo, hi,
			peak, c.at)
	// Not wrong yet: a dead channel has the scale of zeros, which end judges by the largest element of the weight.
	case reach-slack > most:
		c.dead = max(c.dead, peak)
	}
	return ""
}

// end checks that ranges that are too wide are those of dead channels.
func (c *gridCheck) end() string {
	// Only now is the largest element of the weight known.
	if c.dead > 0 && c.largest < c.dead*visible {
		return fmt.Sprintf("elements of magnitudes up to %g have the scale of zeros, the largest one is %g", c.dead,
			c.largest)
	}
	return ""
}

// packedByte is a byte all of whose values of so many bits are v.
func packedByte(v int32, bits int) byte {
	b := byte(v)
	if bits == 8 {
		return b
	}
	b &= 1<<bits - 1
	for at := bits; at < 8; at *= 2 {
		b |= b << at
	}
	return b
}

// Bound is what the stored weight must hold.
func (c *PerChannel) Bound() *pass.Bound {
	l := c.Spec.Levels()
	g := grid{low: byte(l.Lo), high: byte(l.Hi), steps: float32(l.Hi - l.Lo), off: 0.5, panels: c.Layout.panels()}
	return g.bound(c.Weight, c.Restore)
}

func (g ScaleLayout) panels() iter.Seq[panel] {
	return func(yield func(panel) bool) {
		for range g.batch {
			if !yield(panel{g.rows, g.channels, g.inner}) {
				return
			}
		}
	}
}

// withFeedback is the maximum distance in steps of values that are rounded with error feedback: a quarter more than to
// nearest, the maximum shift of kernel.BalanceBlock.
const withFeedback = 0.75

// Bound is what the stored weight must hold. One that was solved elsewhere is the solution.
func (c *Blockwise) Bound() *pass.Bound {
	b := c.Layout
	if b.Solved != nil {
		return pass.ExactBound(b.Solved, c.Restore)
	}
	g := grid{low: packedByte(b.Spec.Low, b.Bits), high: packedByte(b.Spec.High, b.Bits),
		steps: float32(b.Spec.High - b.Spec.Low), off: 0.5, searched: b.Scales != Covering, free: b.Scales == Free,
		panels: b.panels()}
	if b.Spec.Feedback {
		g.off = withFeedback
	}
	if b.Spec.Half {
		g.least = 0x1p-24
	}
	return g.bound(c.Weight, c.Restore)
}

// panels are blocks in the order of the weight.
func (b *BlockLayout) panels() iter.Seq[panel] {
	times, of := int64(1), func(n int64) panel { return panel{n, b.Cols, 1} }
	if b.ColumnMajor {
		times, of = b.Cols, func(n int64) panel { return panel{1, 1, n} }
	}
	return blocksOf(times, b.Rows, int64(b.Spec.Block), of)
}

// blocksOf are the panels of blocks along an axis of n elements, as often as there are such axes.
func blocksOf(times, n, block int64, of func(n int64) panel) iter.Seq[panel] {
	return func(yield func(panel) bool) {
		for range times {
			for at := int64(0); at < n; at += block {
				if !yield(of(min(block, n-at))) {
					return
				}
			}
		}
	}
}

// floatGrid is that of small floats of so many bits.
func floatGrid(f kernel.SmallFloat, bits int) grid {
	low, high := f.Ends()
	relative, absolute := f.HalfSpacing()
	return grid{low: packedByte(int32(low), bits), high: packedByte(int32(high), bits), ulp: relative,
		tiny: absolute / f.Largest()}
}

// Bound is what the stored weight must hold.
func (s *Float8Encoding) Bound() *pass.Bound {
	g := floatGrid(s.Format, 8)
	g.panels = s.Layout.panels()
	return g.bound(s.Weight, s.Restore)
}

// Bound is what the stored weight must hold.
func (b *Float4Encoding) Bound() *pass.Bound {
	g := floatGrid(b.Format, 4)
	g.searched, g.least = true, 0x1p-24
	g.panels = blocksOf(b.outer, b.along, b.block, func(n int64) panel { return panel{n, b.inner, 1} })
	return g.bound(b.Weight, b.Restore)
}
