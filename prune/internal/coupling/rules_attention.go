package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// An attention has a channel for each query head. Heads that share keys and values are of one class.
type attention struct {
	node  *ir.Node
	heads []Channel
}

// attend records the heads of an attention.
func (ch *channelMap) attend(n *ir.Node, heads []Channel) {
	ch.attentions = append(ch.attentions, attention{n, heads})
}

// headClasses are the classes of heads.
func (ch *channelMap) headClasses() map[Channel]bool {
	classes := map[Channel]bool{}
	for _, a := range ch.attentions {
		for _, u := range a.heads {
			classes[ch.class(u)] = true
		}
	}
	return classes
}

// isCache reports whether a value has an axis of heads, before that of their channels: one of keys or values, which
// loses heads also where it is an input or output of the model.
func (ch *channelMap) isCache(classes map[Channel]bool, a *axis) bool {
	return a.at <= -2 && ch.isHeads(classes, a.channels)
}

// isHeads reports whether all channels are heads.
func (ch *channelMap) isHeads(classes map[Channel]bool, us []Channel) bool {
	return !slices.ContainsFunc(us, func(u Channel) bool { return !classes[ch.class(u)] })
}

// keepSplits keeps blocks of channels that are no heads.
func (p *propagation) keepSplits() {
	heads := p.headClasses()
	for _, s := range p.splits {
		if !p.isHeads(heads, s.blocks) {
			p.keep(s.node, s.blocks, pass.Reason{Code: pass.ChannelsAxis, Detail: "axes split or moved"})
		}
	}
}

// blocks joins channel i with the first one of block i / each modulo count, and returns these first ones.
func (p *propagation) blocks(us []Channel, count, each int) []Channel {
	first := make([]Channel, count)
	for h := range first {
		first[h] = us[h*each]
		p.blockSizes[first[h]] = each
	}
	for i, u := range us {
		p.classes.join(u, first[i/each%count])
	}
	return first
}

// An attentionNode is an attention operator, or the rotary embedding before one.
type attentionNode struct {
	*propagation
	node *ir.Node
}

// headsOf are the heads of input i: blocks of channels on the last axis, or the channels on the axis before the last
// two. Nil where there are none.
func (x *attentionNode) headsOf(i int, count int64) []Channel {
	a := x.in(x.node, i)
	if a == nil || count < 1 {
		return nil
	}
	c := int64(len(a.channels))
	switch {
	case a.at == -1 && c%count == 0:
		return x.blocks(a.channels, int(count), int(c/count))
	case a.at == -3 && c == count:
		return a.channels
	}
	return nil
}

// heads are the query heads and key and value heads of an attention.
type heads struct{ query, key, value []Channel }

// join couples each key and value head with the query heads that use it. It returns false where their numbers do not
// fit.
func (x *attentionNode) join(h heads) bool {
	if len(h.query) == 0 || len(h.key) == 0 || len(h.key) != len(h.value) || len(h.query)%len(h.key) != 0 {
		return false
	}
	x.classes.joinAll(h.key, h.value)
	for i, u := range h.query {
		x.classes.join(u, h.key[i*len(h.key)/len(h.query)])
	}
	x.attend(x.node, h.query)
	return true
}

func (x *attentionNode) noHeads() {
	x.unsupported(x.node, pass.Reason{Code: pass.ChannelsUnknown, Detail: "heads"})
}

// countHeads sets an attribute to the number of heads that are kept.
func (x *attentionNode) countHeads(attr string, heads []Channel) {
	if x.node.Attr(attr) == nil {
		return
	}
	x.onRemoval(heads, func(k *removal) { x.node.SetAttr(ir.IntAttr(attr, int64(len(k.keptIndices(heads))))) })
}

// joinCache joins heads with those of past keys or values, and gives them to present ones.
func (x *attentionNode) joinCache(past, present int, heads []Channel) {
	if a := x.in(x.node, past); a != nil && a.at == -3 && len(a.channels) == len(heads) {
		x.classes.joinAll(a.channels, heads)
	} else if x.node.Input(past) != nil {
		x.keep(x.node, heads, pass.Reason{Code: pass.ChannelsAxis, Detail: "past keys or values"})
	}
	x.setOutput(present, -3, heads)
}

// setOutput sets the channels of output i, if it has that.
func (x *attentionNode) setOutput(i, at int, us []Channel) {
	if i < len(x.node.Outputs) {
		x.set(x.node.Outputs[i], at, us)
	}
}

// caches gives channels to the inputs of the graph that may have past keys or values: those of at least four axes that
// an attention, or Concat after other movements, reads.
func (p *propagation) caches(g *ir.Graph) {
	for _, v := range g.Inputs {
		dims, _ := p.inferred.Of(v)
		if v.Const == nil && len(dims) > 3 && dims[len(dims)-3].Known() && dims[len(dims)-3].N <= maxWidth &&
			slices.ContainsFunc(v.Uses(), isCache) {
			p.set(v, -3, p.classes.fresh(dims[len(dims)-3].N))
		}
	}
}

// isCache reports whether a use of an input is that of past keys or values.
func isCache(u ir.Use) bool {
	if u.Node == nil {
		return false
	}
	f := operator.Of(u.Node)
	return len(f.States) > 0 || f.Attention || f.Move == operator.Picks
}

// attendPacked is com.microsoft.Attention: one matrix of query, key and value.
func attendPacked(p *propagation, n *ir.Node) {
	x := &attentionNode{p, n}
	in, count := p.in(n, 0), n.Int("num_heads", 0)
	o := pass.Trace(n.Input(1))
	sizes := packedSizes(n, o)
	if sizes == nil || in != nil && in.at != -1 || len(n.Outputs) > 2 || slices.ContainsFunc(sizes, func(s int64) bool {
		return count < 1 || s < count || s%count != 0
	}) {
		x.noHeads()
		return
	}
	out := p.classes.fresh(o.Shape[1])
	q, k, v := out[:sizes[0]], out[sizes[0]:sizes[0]+sizes[1]], out[sizes[0]+sizes[1]:]
	part := func(us []Channel) []Channel { return p.blocks(us, int(count), len(us)/int(count)) }
	h := heads{part(q), part(k), part(v)}
	x.join(h)
	channels := [][]Channel{in.all(), out}
	p.readConstant(n, 1, channels...)
	p.vector(n, 2, out)
	p.product(n, 1, channels, 1)
	p.set(n.Outputs[0], -1, v)
	x.joinCache(4, 1, h.key)
	p.broadcast(n, 5, &axis{at: -3, channels: h.query})
	x.countHeads("num_heads", h.query)
	if n.Attr("qkv_hidden_sizes") != nil {
		p.onRemoval(out, func(r *removal) {
			n.SetAttr(ir.IntsAttr("qkv_hidden_sizes", int64(len(r.keptIndices(q))), int64(len(r.keptIndices(k))),
				int64(len(r.keptIndices(v)))))
		})
	}
}

// packedSizes are the widths of query, key and value in a packed matrix.
func packedSizes(n *ir.Node, o *pass.Operand) []int64 {
	if !matrix(o) {
		return nil
	}
	if a := n.Attr("qkv_hidden_sizes"); a != nil {
		if len(a.Ints) == 3 && a.Ints[0]+a.Ints[1]+a.Ints[2] == o.Shape[1] {
			return a.Ints
		}
		return nil
	}
	if o.Shape[1]%3 != 0 {
		return nil
	}
	return slices.Repeat([]int64{o.Shape[1] / 3}, 3)
}

// attendHeads is com.microsoft.MultiHeadAttention of separate queries, keys and values.
func attendHeads(p *propagation, n *ir.Node) {
	x := &attentionNode{p, n}
	count := n.Int("num_heads", 0)
	h := heads{x.headsOf(0, count), x.headsOf(1, count), x.headsOf(2, count)}
	v := p.in(n, 2)
	if len(n.Outputs) > 3 || v == nil || v.at != -1 || !x.join(h) {
		x.noHeads()
		return
	}
	if n.Input(3) != nil {
		p.readConstant(n, 3, slices.Concat(p.in(n, 0).channels, p.in(n, 1).channels, v.channels))
	}
	p.broadcast(n, 5, &axis{at: -3, channels: h.query})
	p.set(n.Outputs[0], -1, v.channels)
	x.joinCache(6, 1, h.key)
	x.joinCache(7, 2, h.value)
	x.countHeads("num_heads", h.query)
}

// attendGroups is com.microsoft.GroupQueryAttention, whose query may have keys and values after it.
func attendGroups(p *propagation, n *ir.Node) {
	x := &attentionNode{p, n}
	count, groups := n.Int("num_heads", 0), n.Int("kv_num_heads", 0)
	a := p.in(n, 0)
	if a == nil || a.at != -1 || count < 1 || groups < 1 || len(n.Outputs) > 3 || n.Input(12) != nil ||
		n.Input(13) != nil {
		x.noHeads()
		return
	}
	var h heads
	out := a.channels
	if n.Input(1) != nil {
		h = heads{x.headsOf(0, count), x.headsOf(1, groups), x.headsOf(2, groups)}
	} else {
		each := len(a.channels) / int(count+2*groups)
		if each == 0 || len(a.channels)%int(count+2*groups) != 0 {
			x.noHeads()
			return
		}
		all := p.blocks(a.channels, int(count+2*groups), each)
		h = heads{all[:count], all[count : count+groups], all[count+groups:]}
		out = a.channels[:int(count)*each]
	}
	if !x.join(h) {
		x.noHeads()
		return
	}
	p.set(n.Outputs[0], -1, out)
	x.joinCache(3, 1, h.key)
	x.joinCache(4, 2, h.value)
	p.broadcast(n, 10, &axis{at: -3, channels: h.query})
	p.vector(n, 11, h.query)
	x.countHeads("num_heads", h.query)
	x.countHeads("kv_num_heads", h.key)
}

// attend is Attention of opset 23: heads are an axis, or blocks of the last one.
func attend(p *propagation, n *ir.Node) {
	x := &attentionNode{p, n}
	q, v := p.in(n, 0), p.in(n, 2)
	if q == nil || v == nil || q.at != v.at {
		x.noHeads()
		return
	}
	count, groups := int64(len(q.channels)), int64(len(v.channels))
	if q.at == -1 {
		count, groups = n.Int("q_num_heads", 0), n.Int("kv_num_heads", 0)
	}
	h := heads{x.headsOf(0, count), x.headsOf(1, groups), x.headsOf(2, groups)}
	if !x.join(h) {
		x.noHeads()
		return
	}
	out := h.query
	if q.at == -1 {
		out = nil
		for _, u := range h.query {
			out = append(out, slices.Repeat([]Channel{u}, len(v.channels)/int(groups))...)
		}
	}
	p.set(n.Outputs[0], q.at, out)
	p.broadcast(n, 3, &axis{at: -3, channels: h.query})
	x.joinCache(4, 1, h.key)
	x.joinCache(5, 2, h.value)
	x.setOutput(3, -3, h.query)
	x.countHeads("q_num_heads", h.query)
	x.countHeads("kv_num_heads", h.key)
}

// rotate is a rotary embedding: heads are an axis, or blocks of the last one.
func rotate(p *propagation, n *ir.Node) {
	x := &attentionNode{p, n}
	a := p.in(n, 0)
	if a == nil {
		return
	}
	if a.at == -1 {
		count := n.Int("num_heads", 0)
		if count == 0 {
			count = p.rotaryHeads(n, int64(len(a.channels)))
		}
		heads := x.headsOf(0, count)
		if heads == nil {
			x.noHeads()
			return
		}
		p.splits = append(p.splits, blockSplit{n, heads})
		x.countHeads("num_heads", heads)
	} else if a.at != -3 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: fmt.Sprintf("channels on axis %d", a.at)})
		return
	}
	p.set(n.Outputs[0], a.at, a.channels)
}

// rotaryHeads is the number of heads of a rotary embedding that does not state it: those of the width of the cosines.
func (p *propagation) rotaryHeads(n *ir.Node, width int64) int64 {
	dims := p.dims(n.Input(2))
	if n.Int("rotary_embedding_dim", 0) != 0 || len(dims) != 2 || dims[1].N < 1 {
		return 0
	}
	return width / (2 * dims[1].N)
}
