package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// reshape keeps the channels' axis, merges it with others, or splits it into blocks of channels, such as the heads of
// an attention.
func reshape(p *propagation, n *ir.Node) {
	a, at, _, ok := p.axisOf(n)
	t := p.target(n)
	switch {
	case a == nil && t != nil:
		p.updateSize(n, t, -1, nil)
	case a == nil:
	case !ok || t == nil:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "target shape"})
	default:
		t.in[at] = ir.Dim{N: int64(len(a.channels))}
		m := &reshaping{p, t, n, at, a.channels}
		if found := a.outer && m.regroupInner() || !a.outer && m.regroup(); !found {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "axes split or moved"})
		}
	}
}

// A reshaping is a Reshape of a value with channels.
type reshaping struct {
	*propagation
	*target
	node     *ir.Node
	at       int // axis of the input
	channels []Channel
}

// regroup finds the axis of the output that has the channels: the last one that is possible. It returns false where
// there is none.
func (m *reshaping) regroup() bool {
	// From the last axis, which is the one that a following product reads.
	for to := len(m.to) - 1; to >= 0; to-- {
		if m.keepAxis(to) || m.splitAxis(to) || m.mergeAxes(to) {
			return true
		}
	}
	return m.mergeUnknown() || m.mergeOuter()
}

// keepAxis is a Reshape of other axes.
func (m *reshaping) keepAxis(to int) bool {
	if m.to[to] != m.in[m.at] || !m.isAligned(m.at, m.at+1, to, to+1) {
		return false
	}
	m.setOutputAxis(to, m.channels)
	return true
}

// splitAxis divides the channels into blocks, one for each index of axis to. Of three factors the one that is 3 counts
// query, key and value.
func (m *reshaping) splitAxis(to int) bool {
	end, size := to, int64(1)
	for end < len(m.to) && m.to[end].Known() && size < int64(len(m.channels)) {
		size *= m.to[end].N
		end++
	}
	if end < to+2 || m.to[to].N < 2 || size != int64(len(m.channels)) || !m.isAligned(m.at, m.at+1, to, end) {
		return false
	}
	// Blocks are heads then, and a head's query, key and value have the same index of that axis.
	if end == to+3 && m.to[to].N == 3 {
		to++
	}
	each, _ := product(m.to[to+1 : end])
	m.splitBlocks(to, int(m.to[to].N), int(each))
	return true
}

// splitBlocks joins the channels of each of so many blocks of equal length, and makes the blocks the channels of axis
// to.
func (m *reshaping) splitBlocks(to, count, each int) {
	blocks := m.blocks(m.channels, count, each)
	m.splits = append(m.splits, blockSplit{m.node, blocks})
	m.setOutputAxis(to, blocks)
}

// mergeAxes merges the channels' axis with the axes around it into one of known size.
func (m *reshaping) mergeAxes(to int) bool {
	if !m.to[to].Known() {
		return false
	}
	for from := m.at; from >= 0; from-- {
		for end := m.at + 1; end <= len(m.in); end++ {
			if size, ok := product(m.in[from:end]); !ok || size != m.to[to].N || !m.isAligned(from, end, to, to+1) {
				continue
			}
			channels := m.mergeChannels(m.node, m.channels, m.in[from:m.at], m.in[m.at+1:end])
			if channels != nil {
				m.setOutputAxis(to, channels)
			}
			return true
		}
	}
	return false
}

// mergeUnknown merges the axes from some one on into the last one, whose size its consumer has.
func (m *reshaping) mergeUnknown() bool {
	last := len(m.to) - 1
	if last < 0 || last > m.at || m.to[last].Known() || !m.leads(last, last) {
		return false
	}
	if channels := m.mergeChannels(m.node, m.channels, m.in[last:m.at], m.in[m.at+1:]); channels != nil {
		m.setOutputAxis(last, channels)
	}
	return true
}

// mergeOuter merges the channels' axis, or the blocks that the next axis of the output leaves, with outer axes of
// unknown size: batch and heads.
func (m *reshaping) mergeOuter() bool {
	for to := range m.to {
		switch {
		case m.at == 0 || m.to[to].Known() || m.sizes[to] > 0:
		case m.trails(m.at+1, to+1):
			m.reshapedOuter(to, m.channels)
			return true
		case m.at == len(m.in)-1 && to == len(m.to)-2 && m.leads(min(to, m.at), to) && m.divides(to+1):
			each := int(m.to[to+1].N)
			blocks := m.blocks(m.channels, len(m.channels)/each, each)
			m.splits = append(m.splits, blockSplit{m.node, blocks})
			m.reshapedOuter(to, blocks)
			return true
		}
	}
	return false
}

// divides reports whether the channels are more than one block of the size of an axis.
func (m *reshaping) divides(to int) bool {
	d := m.to[to]
	return d.Known() && d.N > 1 && d.N < int64(len(m.channels)) && int64(len(m.channels))%d.N == 0
}

// regroupInner separates the channels from the outer axes with which they were merged.
func (m *reshaping) regroupInner() bool {
	for to := len(m.to) - 1; to > 0; to-- {
		for end := m.at + 1; end <= len(m.in); end++ {
			size, ok := product(m.in[m.at:end])
			if !ok || m.to[to] != (ir.Dim{N: size}) || !m.trails(end, to+1) {
				continue
			}
			if channels := m.mergeChannels(m.node, m.channels, nil, m.in[m.at+1:end]); channels != nil {
				m.setOutputAxis(to, channels)
			}
			return true
		}
	}
	return false
}

// setOutputAxis sets the output's axis, and updates its size in the target.
func (m *reshaping) setOutputAxis(to int, channels []Channel) {
	m.updateSize(m.node, m.target, to, channels)
	m.set(m.node.Outputs[0], to-len(m.to), channels)
}

func (m *reshaping) reshapedOuter(to int, channels []Channel) {
	m.updateSize(m.node, m.target, -1, nil)
	m.set(m.node.Outputs[0], to-len(m.to), channels)
	m.axes[m.node.Outputs[0]].outer = true
}

// updateSize updates the number of channels on axis at of a target, and records the numbers of channels from which the
// target is computed.
func (p *propagation) updateSize(n *ir.Node, t *target, at int, channels []Channel) {
	p.resolved[n.Outputs[0]] = t.to
	if t.complete {
		p.targets = append(p.targets, counts{n, t, at, channels})
	}
	if at < 0 || t.sizes[at] <= 0 && !isFixed(p, t.from[at]) {
		return
	}
	if t.places[at] == nil {
		p.keep(n, channels, pass.Reason{Code: pass.ChannelsAxis, Detail: "computed target shape"})
		return
	}
	p.onRemoval(channels, func(k *removal) { p.setShapeElement(n, t.places[at], int64(len(k.keptIndices(channels)))) })
}

// isFixed reports whether an element of a shape is computed, but not from a number of channels, with which it would
// follow.
func isFixed(p *propagation, e size) bool {
	a := p.axes[e.of]
	return e == unknownSize || e.of != nil && (a == nil || len(p.dims(e.of))+a.at != e.axis)
}

// expand repeats other axes.
func expand(p *propagation, n *ir.Node) {
	a, t := p.in(n, 0), p.target(n)
	switch {
	case a == nil && t != nil:
		p.updateSize(n, t, -1, nil)
	case a == nil:
	case t == nil || len(t.to)+a.at < 0 || len(t.to) < len(t.in):
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "target shape"})
	default:
		at, c := len(t.to)+a.at, ir.Dim{N: int64(len(a.channels))}
		if t.to[at] != c && t.to[at] != (ir.Dim{N: 1}) {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "repeated channels"})
			return
		}
		for i, d := range t.to { // 1 keeps the size of the input
			if from := i - len(t.to) + len(t.in); from >= 0 && d == (ir.Dim{N: 1}) {
				t.to[i] = t.in[from]
			}
		}
		// A 1 in the target follows the input by itself: nothing is to be written.
		if t.to[at] == c && t.sizes[at] == 1 {
			t.sizes[at] = 0
		}
		p.updateSize(n, t, at, a.channels)
		p.set(n.Outputs[0], a.at, a.channels)
	}
}

// same reports whether sizes are known to be equal.
func same(a, b ir.Dim) bool { return a == b && (a.Known() || a.Param != "") }

// A target is the shape that a Reshape or Expand makes.
type target struct {
	in, to   []ir.Dim // sizes before and after, as far as they are known
	sizes    []int64  // as the model gives them: -1 and 0 follow from in, and so do computed ones, which are 0 here
	from     []size   // of the elements
	places   []*place // where the elements can be written
	complete bool     // all elements are known
}

// isAligned reports whether axes from until end of the input have the same elements as to until toEnd of the output, if
// their numbers are equal: the axes before them have, or those after them.
func (t *target) isAligned(from, end, to, toEnd int) bool {
	return t.leads(from, to) || t.trails(end, toEnd)
}

func (t *target) leads(from, to int) bool { return equalProducts(t.in[:from], t.to[:to]) }

func (t *target) trails(end, toEnd int) bool { return equalProducts(t.in[end:], t.to[toEnd:]) }

// equalProducts reports whether the products of two lists of sizes are known to be equal.
func equalProducts(a, b []ir.Dim) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	cancel(&a, &b)
	x, okA := product(a)
	y, okB := product(b)
	return okA && okB && x == y
}

// cancel removes equal sizes from both lists.
func cancel(a, b *[]ir.Dim) {
	*a = slices.DeleteFunc(*a, func(d ir.Dim) bool {
		i := slices.IndexFunc(*b, func(e ir.Dim) bool { return same(d, e) })
		if i >= 0 {
			*b = slices.Delete(*b, i, i+1)
		}
		return i >= 0
	})
}

// infer computes the size that a target leaves to be inferred.
func (t *target) infer() {
	rest := slices.Index(t.sizes, -1)
	if rest < 0 {
		return
	}
	in, others := slices.Clone(t.in), slices.Delete(slices.Clone(t.to), rest, rest+1)
	cancel(&in, &others)
	total, okIn := product(in)
	known, okTo := product(others)
	if okIn && okTo && known > 0 {
		t.to[rest] = ir.Dim{N: total / known}
	} else if len(in) == 1 && len(others) == 0 {
		t.to[rest] = in[0]
	}
}
