package memory

import (
	"math"
	"slices"
)

// Peak is the most bytes alive at a step, States not among them.
func (p *Passes) Peak() (int64, error) {
	line, err := NewTimeline(p.Blocks, len(p.Steps))
	if err != nil {
		return 0, err
	}
	return line.Peak, nil
}

// Every begins a segment at every n-th node.
func (t *Tape) Every(n int) []int {
	segments := []int{0}
	for at := n; n > 0 && at < len(t.Nodes); at += n {
		segments = append(segments, at)
	}
	return segments
}

// Checkpoints are the segments with the lowest peak of those that algorithm 3 of Chen et al. gives: one ends
// where what it would keep reaches a budget, and no more than one value with a gradient is read
// behind it. Budgets go from all that is kept down to a part of 4096, by halves of a power of two; the best
// one is where memory grows as the square root of the layers, if these are alike.
func (t *Tape) Checkpoints() ([]int, error) {
	plain, err := t.Plan(nil)
	if err != nil {
		return nil, err
	}
	kept := int64(0)
	for _, l := range plain.Layers {
		kept += l.Kept
	}
	narrow := t.narrow()
	best, least := []int{0}, int64(math.MaxInt64)
	var last []int
	for half := range 25 {
		budget := int64(float64(kept) * math.Pow(2, -float64(half)/2))
		segments := within(budget, plain.Layers, narrow)
		if slices.Equal(segments, last) {
			continue
		}
		last = segments
		passes, err := t.Plan(segments)
		if err != nil {
			return nil, err
		}
		peak, err := passes.Peak()
		if err != nil {
			return nil, err
		}
		if peak < least {
			best, least = segments, peak
		}
	}
	return best, nil
}

// within ends a segment in front of the first narrow place at which so much is kept.
func within(budget int64, layers []Layer, narrow []bool) []int {
	segments, sum := []int{0}, int64(0)
	for i, l := range layers {
		if sum >= budget && sum > 0 && narrow[i] {
			segments, sum = append(segments, i), 0
		}
		sum += l.Kept
	}
	return segments
}

// narrow says in front of which nodes no more than one value with a gradient is waiting to be read.
func (t *Tape) narrow() []bool {
	maker, last := make([]int, len(t.Values)), make([]int, len(t.Values))
	for i, n := range t.Nodes {
		for _, v := range n.Makes {
			maker[v] = i
		}
		for _, v := range n.Reads {
			last[v] = i
		}
	}
	changes := make([]int, len(t.Nodes)+1)
	for v, value := range t.Values {
		if value.Grad && last[v] > maker[v] {
			changes[maker[v]+1]++
			changes[last[v]+1]--
		}
	}
	open, narrow := 0, make([]bool, len(t.Nodes))
	for i := range narrow {
		open += changes[i]
		narrow[i] = open <= 1
	}
	return narrow
}
