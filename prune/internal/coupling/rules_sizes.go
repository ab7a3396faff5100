package coupling

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// computed reads a target that is concatenated at run time from constants and sizes
// of other values, one number each.
func (s shapes) computed(n *ir.Node, t *target) bool {
	whole := n.Input(1)
	c := whole.Producer()
	if c == nil || !c.Op.Is("Concat") {
		return false
	}
	t.sizes = make([]int64, len(c.Inputs()))
	t.to = make([]ir.Dim, len(c.Inputs()))
	for i, v := range c.Inputs() {
		if is, ok := v.Ints(); ok {
			if len(is) != 1 || is[0] == 0 {
				return false
			}
			t.sizes[i], t.to[i] = is[0], ir.Dim{N: is[0]}
			continue
		}
		t.to[i] = ir.Dim{N: -1}
		if x, j, ok := s.sizeOf(v); ok {
			t.sized(n, i, x, j)
		}
	}
	if len(whole.Uses()) == 1 {
		t.write = func(at int, size int64) { s.setInts(c, at, []int64{size}) }
	}
	return true
}

// sized sets axis i of the target to the size of axis j of x.
func (t *target) sized(n *ir.Node, i int, x *ir.Value, j int) {
	if dims, ok := opset.Shape(x); ok && j < len(dims) && same(dims[j], dims[j]) {
		t.to[i] = dims[j]
	} else if x == n.Input(0) && j < len(t.in) {
		t.copy(i, j)
	}
}

// sizeOf returns the value and the axis whose size is v.
func (s shapes) sizeOf(v *ir.Value) (x *ir.Value, axis int, ok bool) {
	n := v.Producer()
	for n != nil && n.Input(0) != nil && (n.Op.Is("Cast") || operator.Of(n).Move == operator.View) {
		n = n.Input(0).Producer()
	}
	if n == nil {
		return nil, 0, false
	}
	picks, ok := s.picks(n)
	if !ok || len(picks) != 1 || picks[0] < 0 {
		return nil, 0, false
	}
	shape := n.Input(0).Producer()
	if shape == nil || !shape.Op.Is("Shape") || shape.Attr("start") != nil {
		return nil, 0, false
	}
	return shape.Input(0), int(picks[0]), true
}

// picks are the indices that Gather or Slice selects from a vector, such as a shape.
// Indices from the end are negative.
func (s shapes) picks(n *ir.Node) ([]int64, bool) {
	if n.Op.Is("Gather") {
		return n.Input(1).Ints()
	}
	if n.Op.Is("Slice") {
		if ws := s.windows(n); len(ws) == 1 && ws[0].step == 1 {
			return ws[0].places()
		}
	}
	return nil, false
}

// places are the indices of w in a shape, all counted from one end.
func (w window) places() (is []int64, ok bool) {
	if w.start < 0 && w.end >= maxRank {
		w.end = 0
	} else if w.start < 0 != (w.end < 0) {
		return nil, false
	}
	for i := w.start; i < min(w.end, maxRank); i++ {
		is = append(is, i)
	}
	return is, w.start >= -maxRank
}

// maxRank is larger than any rank.
const maxRank = 64

// shape supports consumers of the sizes of other axes. A consumer of the number of channels may use it in any way.
func shape(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	if !ok || n.Attr("start") != nil || n.Attr("end") != nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "number of channels"})
		return
	}
	for _, u := range n.Outputs[0].Uses() {
		if u.Node == nil || !p.others(u.Node, at, rank) {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "number of channels"})
			return
		}
	}
}

// others reports whether n selects sizes of axes other than at.
func (s shapes) others(n *ir.Node, at, rank int) bool {
	picks, ok := s.picks(n)
	return ok && !slices.ContainsFunc(picks, func(i int64) bool { return counted(i, rank) == at })
}

// resize changes other axes.
func resize(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	if !ok || n.Attr("axes") != nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "axes"})
		return
	}
	if p.factor(n, at, rank) == 1 {
		p.set(n.Outputs[0], a.at, a.channels)
		return
	}
	sizes, given := n.Input(3).Ints()
	if !given || len(sizes) != rank || sizes[at] != int64(len(a.channels)) {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "resized channels, or unknown factors"})
		return
	}
	p.set(n.Outputs[0], a.at, a.channels)
	p.onRemoval(a.channels, func(k *removal) {
		sizes[at] = int64(len(k.left(a.channels)))
		p.setInts(n, 3, sizes)
	})
}

// factor is the scale of that axis, 0 if it is not known.
func (s shapes) factor(n *ir.Node, at, rank int) float32 {
	if a := n.Attr("scales"); a != nil && len(a.Floats) == rank {
		return a.Floats[at]
	}
	last := n.Input(2) // Resize from opset 11 on
	if n.Graph().Opset("") < 11 || n.Op.Is("Upsample") {
		last = n.Input(1)
	}
	if last == nil || last.Const == nil || last.Const.DType != ir.Float || last.Const.Elems() != int64(rank) {
		return 0
	}
	b, ok := last.Const.Stored()
	if !ok {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*at:]))
}
