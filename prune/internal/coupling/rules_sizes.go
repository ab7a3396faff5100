package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A size is an element of a shape: a number, or times the size of an axis of a value.
type size struct {
	times int64
	of    *ir.Value // nil for a number
	axis  int       // from the first one
	place *place    // nil if a number cannot be written there
}

// A place is the input of a node that has an element of a shape: a constant, or one element that is computed.
type place struct {
	node        *ir.Node
	input, item int
}

// unknownSize is an element that is computed in another way.
var unknownSize = size{times: -2}

// elements are those of n's input, a vector or scalar of integers; nil if their number is not known or large.
func (s shapes) elements(n *ir.Node, input int) []size {
	v := n.Input(input)
	if is, ok := v.Ints(); ok {
		list := make([]size, len(is))
		for i, x := range is {
			list[i] = size{times: x, place: &place{n, input, i}}
		}
		return list
	}
	if v == nil || v.Producer() == nil || v.Graph() != n.Graph() {
		return nil
	}
	list, ok := s.computed[v]
	if !ok {
		list = s.compute(v.Producer())
		if len(list) > maxRank {
			list = nil
		}
		s.computed[v] = list
	}
	return slices.Clone(list)
}

// maxRank is larger than any rank.
const maxRank = 64

// compute are the elements of a vector or scalar that c makes.
func (s shapes) compute(c *ir.Node) []size {
	if operator.Of(c).Move == operator.View && len(c.Inputs()) > 0 {
		return s.elements(c, 0)
	}
	if rule := sizeRules()[operator.Name(c.Op)]; rule != nil {
		return rule(s, c)
	}
	return nil
}

// sizeRules are the elements that operators make in the computation of shapes, in addition to views.
func sizeRules() map[string]func(shapes, *ir.Node) []size {
	return map[string]func(shapes, *ir.Node) []size{
		"Cast":   func(s shapes, n *ir.Node) []size { return s.elements(n, 0) },
		"Shape":  shapes.axesOfShape,
		"Gather": shapes.selection,
		"Slice":  shapes.selection,
		"Concat": shapes.concatenation,
		"Mul":    shapes.multiple,
		"Where":  shapes.replacement,
	}
}

// axesOfShape are the sizes that Shape returns.
func (s shapes) axesOfShape(n *ir.Node) []size {
	rank, ok := s.rank(n.Input(0))
	from, to := clamp(n.Int("start", 0), int64(rank)), clamp(n.Int("end", int64(rank)), int64(rank))
	if !ok || from > to {
		return nil
	}
	var list []size
	for i := from; i < to; i++ {
		list = append(list, size{times: 1, of: n.Input(0), axis: int(i)})
	}
	return list
}

// selection are the elements that Gather or Slice selects.
func (s shapes) selection(n *ir.Node) []size {
	all := s.elements(n, 0)
	at, ok := s.picks(n, len(all))
	if !ok {
		return nil
	}
	list := make([]size, len(at))
	for i, k := range at {
		list[i] = all[k]
	}
	return list
}

// picks are the indices that Gather or Slice selects from a vector.
func (s shapes) picks(n *ir.Node, length int) (at []int, ok bool) {
	if n.Op.Is("Gather") {
		is, ok := n.Input(1).Ints()
		for _, i := range is {
			at = append(at, axisFromFirst(i, length))
		}
		return at, ok && !slices.ContainsFunc(at, func(i int) bool { return i < 0 || i >= length })
	}
	ws := s.windows(n)
	if len(ws) != 1 || ws[0].step != 1 {
		return nil, false
	}
	for i := clamp(ws[0].start, int64(length)); i < clamp(ws[0].end, int64(length)); i++ {
		at = append(at, int(i))
	}
	return at, true
}

// concatenation are the elements of a concatenation. What is not known of is one element, as exporters write it.
func (s shapes) concatenation(n *ir.Node) []size {
	var list []size
	for i := range n.Inputs() {
		part := s.elements(n, i)
		if part == nil {
			part = []size{unknownSize}
		}
		if len(part) == 1 && part[0].of != nil {
			part[0].place = &place{node: n, input: i}
		}
		list = append(list, part...)
	}
	return list
}

// multiple is a product with a number.
func (s shapes) multiple(n *ir.Node) []size {
	a, b := s.elements(n, 0), s.elements(n, 1)
	if len(a) != 1 || len(b) != 1 {
		return nil
	}
	if a[0].of == nil {
		a, b = b, a
	}
	if b[0].of != nil || a[0].times < 0 || b[0].times < 0 {
		return []size{unknownSize}
	}
	return []size{{times: a[0].times * b[0].times, of: a[0].of, axis: a[0].axis}}
}

// replacement are the elements of a shape whose -1 are replaced by 1, by which PyTorch exports expand.
func (s shapes) replacement(n *ir.Node) []size {
	equal := n.Input(0).Producer()
	if equal == nil || !equal.Op.Is("Equal") || equal.Input(0) != n.Input(2) {
		return nil
	}
	list := s.elements(n, 2)
	for i := range list {
		if list[i].place = nil; list[i].of == nil && list[i].times == -1 {
			list[i].times = 1
		}
	}
	return list
}

// inputShapes is the opset from which Reshape's target is an input.
const inputShapes = 5

// target is nil if the number of axes is not known.
func (p *propagation) target(n *ir.Node) *target {
	t := &target{complete: true}
	t.in = p.dims(n.Input(0))
	if a := n.Attr("shape"); a != nil && n.Graph().Opset("") < inputShapes {
		for i, x := range a.Ints {
			t.from = append(t.from, size{times: x, place: &place{n, -1, i}})
		}
	} else if t.from = p.elements(n, 1); t.from == nil {
		return nil
	}
	zeros := n.Op.Is("Expand") || n.Int("allowzero", 0) != 0
	for i, e := range t.from {
		d, k := p.sizeOf(e)
		if e.of == nil && e.times == 0 && !zeros && i < len(t.in) {
			d = t.in[i]
		}
		// Only the target itself, or the Concat that makes it, is written to: what is further away may have other
		// consumers.
		if e.place != nil && e.place.node != n && (e.place.node != n.Input(1).Producer() || !e.place.node.Op.Is("Concat")) {
			e.place = nil
		}
		t.to, t.sizes, t.places = append(t.to, d), append(t.sizes, k), append(t.places, e.place)
		t.complete = t.complete && e != unknownSize
	}
	if n.Op.Is("Reshape") {
		t.infer()
	}
	return t
}

// sizeOf is the size that e makes, and how the model gives it.
func (p *propagation) sizeOf(e size) (d ir.Dim, given int64) {
	if e == unknownSize {
		return ir.Dim{N: -1}, 0
	}
	if e.of == nil {
		return ir.Dim{N: max(e.times, -1)}, max(e.times, -1)
	}
	dims := p.dims(e.of)
	if e.axis >= len(dims) {
		return ir.Dim{N: -1}, 0
	}
	switch d := dims[e.axis]; {
	case d.Known():
		return ir.Dim{N: d.N * e.times}, 0
	case e.times == 1:
		return d, 0
	}
	return ir.Dim{N: -1}, 0
}

// origin is the first value whose axis at, counted from the end, has the size of that of v, as operators with constants
// keep it.
func (s shapes) origin(v *ir.Value, at int) *ir.Value {
	first := v
	for n := v.Producer(); n != nil; n = v.Producer() {
		from := s.keeps(n, at)
		if from < 0 {
			break
		}
		v = n.Input(from)
		if known := s.origins[end{v, at}]; known != nil {
			v = known
			break
		}
	}
	// Kept for later questions: without it, following a chain of n nodes takes time n².
	s.origins[end{first, at}] = v
	return v
}

// keeps is the input of n whose axis at, counted from the end, has the size of that of the outputs; -1 where none is
// known to have.
func (s shapes) keeps(n *ir.Node, at int) int {
	f := operator.Of(n)
	switch {
	case f.Elementwise != operator.NotElementwise:
		return onlyInput(n, at)
	case len(f.With(operator.Gain)) > 0 || f.Distribution || f.Product() && at < -1 && pass.Trace(n.Input(1)) != nil:
		return 0
	case n.Op.Is("Split"):
		if rank, ok := s.rank(n.Input(0)); ok && axisFromFirst(n.Int("axis", 0), rank) != rank+at {
			return 0
		}
	}
	return -1
}

// onlyInput is the only input of an elementwise operator, apart from constants with one element on axis at.
func onlyInput(n *ir.Node, at int) int {
	only := -1
	for i, x := range n.Inputs() {
		o := pass.Trace(x)
		switch {
		case x == nil || o != nil && (len(o.Shape)+at < 0 || o.Shape[len(o.Shape)+at] == 1):
		case o != nil || only >= 0:
			return -1
		default:
			only = i
		}
	}
	return only
}

// dims are the sizes of v's axes. Those that are not known have symbols of their own.
func (p *propagation) dims(v *ir.Value) []ir.Dim {
	dims, ok := p.resolved[v]
	if !ok {
		dims, _ = p.inferred.Of(v)
	}
	dims = slices.Clone(dims)
	for i := range dims {
		if same(dims[i], dims[i]) {
			continue
		}
		at := i - len(dims)
		from := p.origin(v, at)
		// The symbol of the origin: sizes of values with one origin are equal without being known. Names of axes in a
		// model do not begin with a zero byte.
		dims[i] = ir.Dim{N: -1, Param: fmt.Sprintf("\x00%s:%d", from.Name, at)}
		if made := p.resolved[from]; len(made)+at >= 0 && made != nil && same(made[len(made)+at], made[len(made)+at]) {
			dims[i] = made[len(made)+at]
		}
	}
	if a := p.axes[v]; a != nil && !a.outer && len(dims)+a.at >= 0 {
		dims[len(dims)+a.at] = ir.Dim{N: int64(len(a.channels))}
	}
	return dims
}

// setShapeElement sets an element of a shape of n to a number. A shape with other consumers is copied.
func (p *propagation) setShapeElement(n *ir.Node, at *place, number int64) {
	if at.input < 0 {
		is := slices.Clone(n.Attr("shape").Ints)
		is[at.item] = number
		n.SetAttr(ir.IntsAttr("shape", is...))
		return
	}
	c := at.node
	if c != n {
		// Other nodes have other channels, or none.
		if whole := n.Input(1); len(whole.Uses()) > 1 {
			c = n.Graph().Insert(n, "Concat", slices.Clone(c.Inputs()), ir.IntAttr("axis", 0)).Producer()
			n.SetInput(1, c.Outputs[0])
		} else {
			c = whole.Producer()
		}
	}
	is, ok := c.Input(at.input).Ints()
	if !ok {
		p.setInts(c, at.input, []int64{number})
		return
	}
	is = slices.Clone(is)
	is[at.item] = number
	p.setLike(c, at.input, is)
}
