package partition

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A cutter computes the costs of cuts.
type cutter struct {
	*outline
	types *types
	bars  []bool // cuts, before each node and after the last, that a value without a declarable type crosses
}

func (c *cutter) line(by string) (*line, error) {
	if c.types.sizes == nil && by != "weights" {
		return nil, errors.New("the engine cannot plan a run of the model: stages can only be balanced by weights")
	}
	n := len(c.nodes)
	l := &line{own: make([]int64, n), needs: make([][]int, n), cross: make([]int64, n+1), producers: make([]int, n+1)}
	switch by {
	case "weights":
		c.weights(l)
	case "activations":
		for i, node := range c.nodes {
			for _, v := range node.Outputs {
				l.own[i] += c.bytesOf(v)
			}
		}
	case "flops":
		for i, node := range c.nodes {
			l.own[i] = c.types.flops(node)
		}
	default:
		return nil, fmt.Errorf("unknown balance criterion %q", by)
	}
	c.crossings(l)
	return l, nil
}

func (c *cutter) bytesOf(v *ir.Value) int64 {
	if v == nil {
		return 0
	}
	return c.types.bytes(v)
}

// weights makes constants the resources common to nodes of a stage.
func (c *cutter) weights(l *line) {
	index := map[*ir.Value]int{}
	for i, n := range c.nodes {
		for _, v := range c.consts[n] {
			at, known := index[v]
			if !known {
				at = len(l.resources)
				index[v] = at
				l.resources = append(l.resources, v.Const.Bytes())
			}
			l.needs[i] = append(l.needs[i], at)
		}
	}
}

// crossings sums the bytes that cross each cut, and excludes cuts crossed by a value whose type cannot be
// declared in a file.
func (c *cutter) crossings(l *line) {
	bytes, barred := make([]int64, len(l.cross)+1), make([]int, len(l.cross)+1)
	hops := c.hops()
	for _, h := range hops {
		// Differences at the first cut that the value crosses and after the last: the loop below sums them up, in one
		// pass over all cuts for any number of values.
		bytes[h.first+1] += c.types.bytes(h.value)
		bytes[h.last+1] -= c.types.bytes(h.value)
		if h.value.Ambiguous || c.types.declaration(h.value) == nil {
			barred[h.first+1]++
			barred[h.last+1]--
		}
	}
	c.lastProducers(l, hops)
	c.bars = make([]bool, len(l.cross))
	open, across := 0, int64(0)
	for at := range l.cross {
		open, across = open+barred[at], across+bytes[at]
		if l.cross[at], c.bars[at] = across, open > 0; open > 0 {
			// A negative value forbids the cut; see line.cross.
			l.cross[at] = -1
		}
	}
}

// lastProducers finds the last producer before each cut: hops are in order of their producers, so the last one that
// covers a cut counts.
func (c *cutter) lastProducers(l *line, hops []hop) {
	// Union-find with path halving: each cut is assigned once, by the last producer, however many values cross it.
	next := make([]int, len(l.producers)+1) // the next cut, from each, that no later hop covers
	for at := range next {
		next[at] = at
	}
	open := func(at int) int {
		for next[at] != at {
			next[at] = next[next[at]]
			at = next[at]
		}
		return at
	}
	for _, h := range slices.Backward(hops) {
		for at := open(h.first + 1); at <= c.last[h.value]; at = open(at) {
			l.producers[at], next[at] = h.first, at+1
		}
	}
}

// cost is the cost of the stage [first, end).
func (l *line) cost(first, end int) int64 {
	var total int64
	l.costs(first, unreached, func(at int, cost int64) {
		if at == end {
			total = cost
		}
	})
	return total
}
