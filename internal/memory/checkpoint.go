package memory

import (
	"math"
	"slices"
)

// Peak is the most bytes alive at a step, States not among them, and the most of values alone.
func (p *Passes) Peak() (all, values int64, err error) {
	line, err := NewTimeline(p.Blocks, len(p.Steps))
	if err != nil {
		return 0, 0, err
	}
	for _, u := range line.Alive {
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

// Checkpoints are the segments that keep least: the most that is held of values at one time, in the
// backward pass of a segment, is what crosses into it and those before it, and all that it keeps. They begin
// where no more than one value with a gradient is read further on. For layers that are all alike that
// is O(√n) of n (Chen et al., section 4.1). What is alive for a node or two only is not foreseen: of the best
// segments and some that hold a little more, those with the lowest peak are taken. It takes time that
// grows as the square of such places.
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

// slack is by which parts of the least limit larger ones are tried, up to twice as much.
const slack = 16

// least is the lowest limit that there are segments for.
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

// checkpoints are what there is to choose from.
type checkpoints struct {
	kept    []int64 // by all nodes in front of each
	places  []int   // where segments may begin, 0 the first
	crosses []int64 // what crosses into each
}

// within finds segments that hold no more than limit, nil if there are none. Of two ways to a place the
// one that keeps less in front of it is never the worse one.
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

// narrow are the nodes in front of which no more than one value with a gradient is waiting to be read,
// the first node among them, and its bytes. A value that is yet to be written over is none to keep.
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
		for _, i := range s.readers[v] {
			last = max(last, i)
		}
		if value.Grad && last > s.maker[v] {
			wait(s.maker[v], last, 1, value.Bytes)
		}
	}
	for _, r := range s.rooms {
		if last := s.maker[r.values[len(r.values)-1]]; last > r.first {
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
