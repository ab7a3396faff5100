package sparse

import (
	"bytes"
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A graphForm is a sparse form in a graph.
type graphForm struct {
	layout
	value *ir.Value    // the dense tensor that its nodes make
	parts []*ir.Tensor // in the layout's order
}

// A finder recognises the forms of this package in any model, by what their nodes do:
// names, and what else hangs on them, do not matter.
type finder struct {
	step    *pass.Step
	holders map[*ir.Tensor]*ir.Value // the constants that were read
}

func newFinder(s *pass.Step) *finder { return &finder{s, map[*ir.Tensor]*ir.Value{}} }

// finders read a form off the nodes that make a value; what they return is not
// certain yet.
var finders = []func(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor){findCOO, findCSR, findBSR,
	findBitmask, findDelta}

// forms finds the forms of the model in the order of their last nodes.
func (f *finder) forms(ctx context.Context) []graphForm {
	var fs []graphForm
	for n := range f.step.Model.Nodes() {
		if len(n.Outputs) != 1 || n.Outputs[0] == nil || !n.Op.Is("Reshape") {
			continue
		}
		if x, ok := f.form(ctx, n.Outputs[0]); ok {
			fs = append(fs, x)
		}
	}
	return fs
}

// form is the one that makes v. A form that was read off is built again next to the
// model: the two are the same, node for node, or v is something else.
func (f *finder) form(ctx context.Context, v *ir.Value) (graphForm, bool) {
	for _, find := range finders {
		l, parts := find(ctx, f, v)
		// Before the form is built: sizes of files of others may be anything.
		if l == nil || !fits(l, parts) {
			continue
		}
		b := &builder{g: ir.NewModel().Graph, values: map[*ir.Tensor]*ir.Value{}, konst: unshared}
		if f.isSame(ctx, v, l.build(b, parts)) {
			return graphForm{l, v, parts}, true
		}
	}
	return graphForm{}, false
}

// fits reports whether tensors are what l stores.
func fits(l layout, parts []*ir.Tensor) bool {
	for i, p := range l.parts() {
		if parts[i].DType != p.DType || !slices.Equal(parts[i].Shape, p.Shape) {
			return false
		}
	}
	s := l.dense()
	return stores(s.DType) && s.Valid() == nil && s.Elems() > 0 && s.Elems() <= maxElems
}

// isSame reports whether v is made as w is.
func (f *finder) isSame(ctx context.Context, v, w *ir.Value) bool {
	if v == nil || v.Const != nil || w.Const != nil {
		return v != nil && v.Const != nil && w.Const != nil && f.sameConst(ctx, v, w.Const)
	}
	n, m := v.Producer(), w.Producer()
	// Other inputs that a node of a later opset may have must be absent, or the two may differ by them.
	if n == nil || !ir.DefaultDomain(n.Op.Domain) || n.Op.Type != m.Op.Type || len(n.Inputs()) != len(m.Inputs()) {
		return false
	}
	if !f.sameAttrs(ctx, n.Attrs, m.Attrs) {
		return false
	}
	for i, x := range m.Inputs() {
		if !f.isSame(ctx, n.Inputs()[i], x) {
			return false
		}
	}
	return true
}

// sameConst compares helper constants; parts are the same tensors.
func (f *finder) sameConst(ctx context.Context, v *ir.Value, want *ir.Tensor) bool {
	// Parts are compared by identity: the form was built with the tensors that find returned, so that no payload is
	// read.
	if v.Const == want {
		return f.constant(v) != nil
	}
	return f.constant(v) != nil && f.samePayload(ctx, v.Const, want)
}

func (f *finder) samePayload(ctx context.Context, t, want *ir.Tensor) bool {
	b, ok := want.Source.(ir.Mem)
	if !ok || t.DType != want.DType || !slices.Equal(t.Shape, want.Shape) {
		return false
	}
	// After the type and the shape, which are those of helper constants: small.
	got, err := f.step.Eval.ReadAll(ctx, t)
	return err == nil && bytes.Equal(got, b)
}

func (f *finder) sameAttrs(ctx context.Context, as, bs []*ir.Attr) bool {
	return slices.EqualFunc(as, bs, func(a, b *ir.Attr) bool {
		switch {
		case a.Name != b.Name || a.Type != b.Type || a.Ref != "":
			return false
		case b.Type == ir.AttrTensor:
			return a.Tensor != nil && f.samePayload(ctx, a.Tensor, b.Tensor)
		}
		return a.I == b.I && a.S == b.S && slices.Equal(a.Ints, b.Ints)
	})
}

// input is input i of the node that makes v, nil unless that is an op.
func input(v *ir.Value, op string, i int) *ir.Value {
	if v == nil || v.Producer() == nil || !v.Producer().Op.Is(op) {
		return nil
	}
	return v.Producer().Input(i)
}

// constant is v's tensor, nil if v is none.
func (f *finder) constant(v *ir.Value) *ir.Tensor {
	if v == nil || v.Const == nil {
		return nil
	}
	f.holders[v.Const] = v
	return v.Const
}

// reshapeInput is what a Reshape that makes v reads, and the shape it gives.
func (f *finder) reshapeInput(v *ir.Value) (*ir.Value, []int64) {
	shape, ok := input(v, "Reshape", 1).Ints()
	if !ok || slices.Min(append(shape, 0)) < 0 {
		return nil, nil
	}
	return input(v, "Reshape", 0), shape
}

// A scattering is values put at linear positions of a dense tensor.
type scattering struct {
	tensor
	positions, values *ir.Value
}

func (f *finder) scatteringOf(ctx context.Context, v *ir.Value) *scattering {
	flat, shape := f.reshapeInput(v)
	fill, ok := f.fillByte(ctx, input(flat, "ScatterElements", 0))
	if !ok {
		return nil
	}
	t := tensor{Spec: ir.Spec{Shape: shape}, fill: fill}
	return &scattering{t, input(flat, "ScatterElements", 1), input(flat, "ScatterElements", 2)}
}

// fillByte is the byte that ConstantOfShape, if it makes v, repeats.
func (f *finder) fillByte(ctx context.Context, v *ir.Value) (byte, bool) {
	if input(v, "ConstantOfShape", 0) == nil {
		return 0, false
	}
	a := v.Producer().Attr("value")
	if a == nil || a.Tensor == nil {
		return 0, false
	}
	return f.firstFill(ctx, a.Tensor)
}

// firstFill is the byte that fills t's first element: 0, but for 8-bit types.
func (f *finder) firstFill(ctx context.Context, t *ir.Tensor) (byte, bool) {
	size := t.DType.Bits() / 8
	if size == 0 || t.Elems() == 0 {
		return 0, false
	}
	r, err := f.step.Eval.Open(ctx, t)
	if err != nil {
		return 0, false
	}
	b := make([]byte, size)
	if err := ir.ReadFull(r, b, 0); err != nil {
		return 0, false
	}
	return b[0], size == 1 || bytes.Equal(b, make([]byte, size))
}

// sliceLength is the number of elements a Slice that makes v leaves, whole if none does.
func (f *finder) sliceLength(v *ir.Value, whole int64) int64 {
	ends, ok := input(v, "Slice", 2).Ints()
	if !ok || len(ends) != 1 {
		return whole
	}
	return ends[0]
}
