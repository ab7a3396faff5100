package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// reshape keeps the channels' axis, or merges it with others. Splitting it would couple
// channels at different positions.
func reshape(p *propagation, n *ir.Node) {
	a, at, _, ok := p.axisOf(n)
	if a == nil {
		return
	}
	t := p.target(n)
	if !ok || t == nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "target shape"})
		return
	}
	from := 0 // axes in front that stay as they are
	for from < min(at, len(t.to)) && same(t.in[from], t.to[from]) {
		from++
	}
	c, last, end := ir.Dim{N: int64(len(a.channels))}, len(t.to)-1, len(t.in)-1
	switch {
	case from == at && at < last && t.to[at] == c, from == at && at == last && at == end && t.to[at] == c:
		p.reshaped(n, t, at, a.channels)
	case at == end && last >= 0 && t.to[last] == c:
		p.reshaped(n, t, last, a.channels)
	case from == last, last == 1 && at > 0 && rows(t.in, t.to):
		if channels := p.merged(n, a.channels, t.in[last:at], t.in[at+1:]); channels != nil {
			p.reshaped(n, t, last, channels)
		}
	default:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "axes split or moved"})
	}
}

// reshaped sets n's output, and updates the number of channels in the target.
func (p *propagation) reshaped(n *ir.Node, t *target, at int, channels []Channel) {
	if t.sizes[at] > 0 && t.write == nil {
		p.keep(n, channels, pass.Reason{Code: pass.ChannelsAxis, Detail: "target shape with other consumers"})
	}
	p.set(n.Outputs[0], at-len(t.to), channels)
	if t.sizes[at] > 0 && t.write != nil {
		p.onRemoval(channels, func(k *removal) { t.write(at, int64(len(k.left(channels)))) })
	}
}

// same reports whether sizes are known to be equal.
func same(a, b ir.Dim) bool { return a == b && (a.Known() || a.Param != "") }

// rows reports whether the first of two axes is the first of in, because the other
// one has the rest of the elements.
func rows(in, to []ir.Dim) bool {
	rest, ok := product(in[1:])
	return ok && to[1] == ir.Dim{N: rest}
}

// A target is the shape that a Reshape makes.
type target struct {
	in, to []ir.Dim // sizes before and after the Reshape, as far as they are known
	sizes  []int64  // as the model gives them: -1 and 0 follow from in, and so do computed ones, which are 0 here
	write  func(at int, size int64)
}

// inputShapes is the opset from which Reshape's target is an input.
const inputShapes = 5

// target is nil if the shape is not known.
func (s shapes) target(n *ir.Node) *target {
	dims, _ := opset.Shape(n.Input(0))
	t := &target{in: slices.Clone(dims)}
	if a := n.Attr("shape"); a != nil && n.Graph().Opset("") < inputShapes {
		t.sizes = slices.Clone(a.Ints)
		t.write = func(at int, size int64) {
			t.sizes[at] = size
			n.SetAttr(ir.IntsAttr("shape", t.sizes...))
		}
	} else if is, ok := n.Input(1).Ints(); ok {
		t.sizes = is
		t.write = func(at int, size int64) {
			t.sizes[at] = size
			s.setInts(n, 1, t.sizes)
		}
	} else if !s.computed(n, t) {
		return nil
	}
	t.infer(n.Int("allowzero", 0) != 0)
	return t
}

// infer computes the sizes that a target leaves to be inferred.
func (t *target) infer(zeros bool) {
	rest := -1
	for i, d := range t.sizes {
		if len(t.to) == i {
			t.to = append(t.to, ir.Dim{N: d})
		}
		switch {
		case d == 0 && !zeros && i < len(t.in) && t.to[i] == ir.Dim{}:
			t.copy(i, i)
		case d == -1:
			rest = i
		}
	}
	if rest < 0 {
		return
	}
	total, okIn := product(t.in)
	known, okTo := product(slices.Delete(slices.Clone(t.to), rest, rest+1))
	if okIn && okTo && known > 0 {
		t.to[rest] = ir.Dim{N: total / known}
	}
}

// copy sets axis i of the target to the size of axis j of the input; a size that is not known gets a symbol,
// as both are equal.
func (t *target) copy(i, j int) {
	if !t.in[j].Known() && t.in[j].Param == "" {
		t.in[j].Param = "\x00" + string(rune('a'+j))
	}
	t.to[i] = t.in[j]
}
