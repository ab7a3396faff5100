package opset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// An attention is the sizes of one node that attends to keys and values of its own and of a cache.
type attention struct {
	batch, queries, keys ir.Dim
	past                 ir.Dim // 0 without a cache
	heads, keyHeads      ir.Dim
	size, valueSize      ir.Dim // elements of a head
	split                bool   // queries are batch × heads × tokens × elements
	window               int64  // of a cache that holds the last positions only, else 0
}

// total is the number of keys, those of the cache included; unknown if the cache slides.
func (a *attention) total() ir.Dim {
	if a.window > 0 {
		return ir.Dim{N: -1}
	}
	return plus(a.past, a.keys)
}

// present is the number of positions of the present cache.
func (a *attention) present() ir.Dim {
	if a.window > 0 {
		return a.past
	}
	return a.total()
}

// attention reads the sizes of n, which has the fact Attention.
func (f *inference) attention(n *ir.Node) (*attention, bool) {
	q, ok := f.shape(n.Input(0))
	if !ok || len(q) != 3 && len(q) != 4 {
		return nil, false
	}
	a := &attention{batch: q[0], past: ir.Dim{N: 0}, split: len(q) == 4, window: operator.SlidingWindow(n)}
	a.heads = ir.Dim{N: n.Int("num_heads", n.Int("q_num_heads", -1))}
	a.keyHeads = ir.Dim{N: n.Int("kv_num_heads", a.heads.N)}
	if a.split {
		a.heads, a.queries, a.size = q[1], q[2], q[3]
	} else {
		a.queries, a.size = q[1], over(q[2], a.heads)
	}
	f.keysOf(a, n, q)
	for _, s := range operator.Of(n).States {
		if past, ok := f.shape(n.Input(s.Input)); ok && s.Axis < len(past) {
			a.past = past[s.Axis]
		}
	}
	return a, true
}

// keysOf reads the sizes of keys and values, which are packed with the queries if they are absent.
func (f *inference) keysOf(a *attention, n *ir.Node, q []ir.Dim) {
	a.keys, a.valueSize = a.queries, a.size
	k, ok := f.shape(n.Input(1))
	switch {
	// Packed: queries, keys and values are the columns of one input.
	case n.Input(1) == nil && !a.split:
		a.size = over(q[2], plus(a.heads, plus(a.keyHeads, a.keyHeads)))
		a.valueSize = a.size
	case ok && len(k) == 4:
		a.keyHeads, a.keys = k[1], k[2]
	case ok && len(k) == 3:
		a.keys = k[1]
	default:
		a.keys = ir.Dim{N: -1}
	}
	switch v, ok := f.shape(n.Input(2)); {
	case ok && len(v) == 4:
		a.valueSize = v[3]
	case ok && len(v) == 3:
		a.valueSize = over(v[2], a.keyHeads)
	}
}

// plus, times and over are unknown where an operand is, and over where it leaves a rest.
func plus(a, b ir.Dim) ir.Dim {
	if !a.Known() || !b.Known() {
		return ir.Dim{N: -1}
	}
	return ir.Dim{N: a.N + b.N}
}

func times(a, b ir.Dim) ir.Dim {
	if !b.Known() || b.N == 0 {
		return ir.Dim{N: -1}
	}
	return scaled(a, b.N)
}

func over(a, b ir.Dim) ir.Dim {
	if !b.Known() || b.N == 0 {
		return ir.Dim{N: -1}
	}
	return scaled(a, -b.N)
}
