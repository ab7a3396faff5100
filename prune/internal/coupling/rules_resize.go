package coupling

import (
	"encoding/binary"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

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
		sizes[at] = int64(len(k.keptIndices(a.channels)))
		p.setInts(n, 3, sizes)
	})
}

// factor is the scale of that axis, 0 if it is not known.
func (s shapes) factor(n *ir.Node, at, rank int) float32 {
	if a := n.Attr("scales"); a != nil && len(a.Floats) == rank {
		return a.Floats[at]
	}
	last := n.Input(2) // Resize from opset 11 on
	// Opset 11 inserted the region of interest as input 1.
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
