package coupling

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A window is the range of one axis that Slice selects.
type window struct{ start, end, axis, step int64 }

// slice selects a range of channels, or of another axis, which does not affect them.
func slice(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		p.resolveSlice(n)
		return
	}
	ws := p.windows(n)
	if axes, given := n.Input(3).Ints(); ok && ws == nil && given && !slices.ContainsFunc(axes, func(x int64) bool {
		return axisFromFirst(x, rank) == at
	}) {
		p.set(n.Outputs[0], a.at, a.channels) // computed bounds of other axes
		return
	}
	if !ok || ws == nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "indices"})
		return
	}
	for i, w := range ws {
		if axisFromFirst(w.axis, rank) != at {
			continue
		}
		if w.step != 1 {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "step other than 1"})
			return
		}
		p.sliceChannels(n, a, ws, i)
		return
	}
	p.set(n.Outputs[0], a.at, a.channels)
}

// resolveSlice gives n's output the resolved sizes of the axes that it leaves whole.
func (s shapes) resolveSlice(n *ir.Node) {
	dims := slices.Clone(s.resolved[n.Input(0)])
	axes, ok := n.Input(3).Ints()
	if dims == nil || !ok {
		return
	}
	for _, x := range axes {
		if at := axisFromFirst(x, len(dims)); at >= 0 && at < len(dims) {
			dims[at] = ir.Dim{N: -1}
		}
	}
	s.resolved[n.Outputs[0]] = dims
}

// sliceChannels is a slice of channels from start to end.
func (p *propagation) sliceChannels(n *ir.Node, a *axis, ws []window, i int) {
	total := int64(len(a.channels))
	start, end := clamp(ws[i].start, total), clamp(ws[i].end, total)
	if start >= end {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "no channels left"})
		return
	}
	p.set(n.Outputs[0], a.at, a.channels[start:end])
	p.onRemoval(a.channels, func(k *removal) {
		// Bounds become the numbers of kept channels before them.
		ws[i].start = int64(len(k.keptIndices(a.channels[:start])))
		ws[i].end = int64(len(k.keptIndices(a.channels[:end])))
		p.setWindows(n, ws)
	})
}

// clamp limits an index, which may be counted from the end, to the axis.
func clamp(i, n int64) int64 {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// inputSlices is the opset from which Slice's bounds are inputs.
const inputSlices = 10

// windows are n's slices, nil if they are not known.
func (s shapes) windows(n *ir.Node) []window {
	lists, ok := make([][]int64, 4), true
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		switch attr := n.Attr(name); {
		case attr != nil:
			lists[i] = attr.Ints
		case n.Input(i+1) != nil:
			lists[i], ok = n.Input(i + 1).Ints()
		}
		if !ok {
			return nil
		}
	}
	ws := make([]window, len(lists[0]))
	for i := range ws {
		ws[i] = window{lists[0][i], math.MaxInt64, int64(i), 1}
		if len(lists[1]) != len(ws) || lists[2] != nil && len(lists[2]) != len(ws) || lists[3] != nil &&
			len(lists[3]) != len(ws) {
			return nil
		}
		ws[i].end = lists[1][i]
		if lists[2] != nil {
			ws[i].axis = lists[2][i]
		}
		if lists[3] != nil {
			ws[i].step = lists[3][i]
		}
	}
	return ws
}

func (s shapes) setWindows(n *ir.Node, ws []window) {
	starts, ends := make([]int64, len(ws)), make([]int64, len(ws))
	for i, w := range ws {
		starts[i], ends[i] = w.start, w.end
	}
	if n.Graph().Opset("") < inputSlices {
		n.SetAttr(ir.IntsAttr("starts", starts...))
		n.SetAttr(ir.IntsAttr("ends", ends...))
		return
	}
	s.setLike(n, 1, starts)
	s.setLike(n, 2, ends)
}

// setLike is setInts of the type that the input has: Slice requires one type for all.
func (s shapes) setLike(n *ir.Node, i int, is []int64) {
	if n.Input(i).Const.DType == ir.Int64 {
		s.setInts(n, i, is)
		return
	}
	var b []byte
	for _, x := range is {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(min(max(x, math.MinInt32), math.MaxInt32))))
	}
	old := n.Input(i)
	n.SetInput(i, s.step.Const(n.Graph(), ir.Int32, []int64{int64(len(is))}, b))
	old.Drop()
}
