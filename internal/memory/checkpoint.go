package memory

import (
	"math"
	"slices"
)

// Peak returns the maximum of live bytes at a step, without States, and the maximum of activations alone.
func (p *Passes) Peak() (all, values int64, err error) {
	line, err := NewTimeline(p.Blocks, len(p.Steps))
	if err != nil {
		return 0, 0, err
	}
	for _, u := range line.Live {
		values = max(values, u[Activation])
	}
	return line.Peak, values, nil
}

// Every begins a segment at every n-th node.
func (t *Tape) Every(n int) []int {
	segments := []int{0}
	for at := n; n > 0 && at < len(t.Nodes); at += n {
		segments = append(segments, at)
	}
	return segments
}

// Checkpoints returns the segments with the least stored activations: the maximum of activations in the backward pass of a segment is the
// bytes that enter it and those before it, and all that it stores. They begin where at most one value with a gradient is live. For equal
// layers that is O(√n) of n (Chen et al., section 4.1). Short-lived values are not part of the estimate: of the best segments and some
// that store slightly more, those with the lowest peak are chosen. The time is quadratic in the number of such positions.
func (t *Tape) Checkpoints() ([]int, error) {
	plain, err := t.Plan(nil)
	if err != nil {
		return nil, err
	}
	c := &checkpoints{kept: make([]int64, len(t.Nodes)+1)}
	for i, l := range plain.Layers {
		c.kept[i+1] = c.kept[i] + l.Kept
	}
	if c.places, c.crosses, err = t.narrow(); err != nil {
		return nil, err
	}
	limit, all := c.least(), c.kept[len(t.Nodes)]
	best := []int{0}
	least, fewest, err := plain.Peak()
	for k := int64(0); k <= slack && err == nil && limit+k*limit/slack <= all; k++ {
		segments := c.within(limit + k*limit/slack)
		peak, values, err := t.peak(segments)
		if err != nil {
			return nil, err
		}
		if peak < least || peak == least && values < fewest {
			best, least, fewest = segments, peak, values
		}
	}
	return best, err
}

// slack is the number of limits that are tried, from the lowest limit to twice as much.
const slack = 16

// least returns the lowest limit for which there are segments.
func (c *checkpoints) least() int64 {
	low, high := int64(0), c.kept[len(c.kept)-1]
	for low < high {
		if limit := low + (high-low)/2; c.within(limit) != nil {
			high = limit
		} else {
			low = limit + 1
		}
	}
	return low
}

func (t *Tape) peak(segments []int) (all, values int64, err error) {
	p, err := t.Plan(segments)
	if err != nil {
		return 0, 0, err
	}
	return p.Peak()
}

// checkpoints are the candidates for segments.
type checkpoints struct {
	kept    []int64 // by all nodes before each
	places  []int   // where segments may begin, 0 the first
	crosses []int64 // bytes that enter each
}

// within returns segments that store no more than limit, nil if there are none. Of two ways to a position the one that stores less before
// it is never worse.
func (c *checkpoints) within(limit int64) []int {
	least, from := make([]int64, len(c.places)+1), make([]int, len(c.places)+1)
	for k := 1; k <= len(c.places); k++ {
		end, crosses := len(c.kept)-1, int64(0)
		if k < len(c.places) {
			end, crosses = c.places[k], c.crosses[k]
		}
		least[k] = math.MaxInt64
		for j := range k {
			inside := c.kept[end] - c.kept[c.places[j]]
			if least[j] <= limit-inside && least[j]+crosses < least[k] {
				least[k], from[k] = least[j]+crosses, j
			}
		}
	}
	if least[len(c.places)] == math.MaxInt64 {
		return nil
	}
	var segments []int
	for k := from[len(c.places)]; k > 0; k = from[k] {
		segments = append(segments, c.places[k])
	}
	segments = append(segments, 0)
	slices.Reverse(segments)
	return segments
}

// narrow returns the nodes before which at most one value with a gradient is live, the first node included, and its bytes. A value that is
// written in place later is not a candidate.
func (t *Tape) narrow() (places []int, crosses []int64, err error) {
	s, err := newSchedule(t, nil)
	if err != nil {
		return nil, nil, err
	}
	count, bytes := make([]int, len(t.Nodes)+1), make([]int64, len(t.Nodes)+1)
	wait := func(from, to, values int, n int64) {
		count[from+1], bytes[from+1] = count[from+1]+values, bytes[from+1]+n
		count[to+1], bytes[to+1] = count[to+1]-values, bytes[to+1]-n
	}
	for v, value := range t.Values {
		last := -1
		for _, i := range s.consumers[v] {
			last = max(last, i)
		}
		if value.Grad && last > s.producer[v] {
			wait(s.producer[v], last, 1, value.Bytes)
		}
	}
	for _, r := range s.buffers {
		if last := s.producer[r.values[len(r.values)-1]]; last > r.first {
			wait(r.first, last, 2, 0)
		}
	}
	open, across := 0, int64(0)
	for i := range t.Nodes {
		open, across = open+count[i], across+bytes[i]
		if open <= 1 {
			places, crosses = append(places, i), append(crosses, across)
		}
	}
	return places, crosses, nil
}
