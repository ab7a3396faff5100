package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// flatten makes one axis of the channels' and of those behind it, and in front of it back to
// the one that it flattens from.
func flatten(p *Plan, n *ir.Node) {
	a, at, rank, ok := p.place(n)
	if a == nil {
		return
	}
	from := counted(n.Int("axis", 1), rank)
	if !ok || at < from {
		p.stop(n, "puts them into its first axis")
		return
	}
	dims, _ := opset.Shape(n.Input(0))
	if units := p.merged(n, a.units, dims[from:at], dims[at+1:]); units != nil {
		p.set(n.Outputs[0], -1, units)
	}
}

// merged are the places of an axis made of several: units stand before × units × behind. An
// unknown number behind them follows from the width that a reader expects. It is nil, and
// the units are kept, where there is no way to tell.
func (p *Plan) merged(n *ir.Node, units []Unit, before, behind []ir.Dim) []Unit {
	b, okB := product(before)
	e, okE := product(behind)
	if !okE || !okB {
		width, ok := p.width(n.Outputs[0])
		rest := width / int64(len(units))
		switch {
		case !ok || rest*int64(len(units)) != width:
			p.keep(n, units, "flattens them with sizes that are not known")
			return nil
		case okB && rest%max(b, 1) == 0:
			e = rest / max(b, 1)
		case okE && rest%max(e, 1) == 0:
			b = rest / max(e, 1)
		default:
			p.keep(n, units, "flattens them with sizes that are not known")
			return nil
		}
	}
	if e < 1 || b < 1 || e > maxWidth/int64(len(units)) || b > maxWidth/(e*int64(len(units))) {
		p.keep(n, units, "flattens them with sizes that no tensor has")
		return nil
	}
	var one []Unit
	for _, u := range units {
		one = append(one, slices.Repeat([]Unit{u}, int(e))...)
	}
	return slices.Repeat(one, int(b))
}

func product(dims []ir.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range dims {
		if !d.Known() {
			return 0, false
		}
		n *= d.N
	}
	return n, true
}

// width is the length of v's last axis, by what is known of it or else by its readers.
func (p *Plan) width(v *ir.Value) (int64, bool) {
	if dims, ok := opset.Shape(v); ok && len(dims) > 0 && dims[len(dims)-1].Known() {
		return dims[len(dims)-1].N, true
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		if o := p.c.Trace(u.Node.Input(1)); o != nil && o.Trouble == "" && u.Index == 0 && len(o.Shape) == 2 {
			switch op := operator(u.Node.Op); {
			case op == "MatMul", op == "Gemm" && u.Node.Int("transB", 0) == 0:
				return o.Shape[0], true
			case op == "Gemm":
				return o.Shape[1], true
			}
		}
		if passing[operator(u.Node.Op)] {
			if w, ok := p.width(u.Node.Outputs[0]); ok {
				return w, true
			}
		}
	}
	return 0, false
}

// passing are operators between a flattening and its reader that keep the shape.
var passing = map[string]bool{"Identity": true, "Dropout": true, "Relu": true, "Cast": true}
