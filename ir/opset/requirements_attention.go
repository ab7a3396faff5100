package opset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// attends are the sizes of caches, masks and rotary tables of a node that attends to keys and values.
func (f *inference) attends(n *ir.Node) []requirement {
	a, ok := f.attention(n)
	if !ok {
		return nil
	}
	var list []requirement
	for _, s := range operator.Of(n).States {
		cache, ok := f.shape(n.Input(s.Input))
		if !ok || len(cache) != 4 {
			continue
		}
		size := a.size
		if s.Output == 2 {
			size = a.valueSize
		}
		for i, want := range []ir.Dim{a.batch, a.keyHeads, a.past, size} {
			list = append(list, requirement{size: cache[i], want: want})
		}
		if a.window > 0 {
			list = append(list, requirement{cache[2], ir.Dim{N: a.window}, isAtLeast})
		}
	}
	for _, i := range operator.Of(n).Masks {
		if mask, ok := f.shape(n.Input(i)); ok && len(mask) > 1 {
			list = append(list, requirement{mask[len(mask)-1], a.total(), isBroadcast})
		}
	}
	return append(list, f.positions(n, a)...)
}

// positions are the total number of tokens, which is an input of its own, and the rows of rotary tables.
func (f *inference) positions(n *ir.Node, a *attention) []requirement {
	facts := operator.Of(n)
	var list []requirement
	if total, ok := f.ints(n.Input(facts.Total)); facts.Total > 0 && ok && len(total) == 1 {
		list = append(list, requirement{size: ir.Dim{N: total[0]}, want: a.total()})
	}
	for _, i := range facts.Rotary {
		if t, ok := f.shape(n.Input(i)); ok && len(t) == 2 {
			list = append(list, requirement{t[0], a.total(), isAtLeast}, requirement{a.size, scaled(t[1], 2), isAtLeast})
		}
	}
	return list
}

// selfAttends are the sizes of com.microsoft's Attention: a cache of keys and values in one tensor, and a mask.
func selfAttends(f *inference, n *ir.Node) []requirement {
	x, ok := f.shape(n.Input(0))
	y, ok2 := selfAttentionShape(f, n, 0)
	if !ok || !ok2 {
		return nil
	}
	heads := ir.Dim{N: n.Int("num_heads", -1)}
	total := x[1]
	var list []requirement
	if cache, ok := f.shape(n.Input(4)); ok && len(cache) == 5 {
		total = plus(cache[3], total)
		for i, want := range []ir.Dim{{N: 2}, x[0], heads, cache[3], over(y[2], heads)} {
			list = append(list, requirement{size: cache[i], want: want})
		}
	}
	mask, ok := f.shape(n.Input(3))
	switch {
	case ok && len(mask) == 4: // of the maximum length
		list = append(list, requirement{mask[3], total, isAtLeast}, requirement{size: mask[2], want: mask[3]})
	case ok && len(mask) > 1:
		list = append(list, requirement{size: mask[len(mask)-1], want: total})
	}
	return list
}
