package pass

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An Operand is a constant as the input of an operator: after Cast, Transpose and the views (Flatten, Identity,
// Reshape, Squeeze, Unsqueeze) between them.
type Operand struct {
	Base       *ir.Value
	Shape      []int64  // after the chain
	Elem       ir.DType // after the chain
	Transposed bool     // the matrix is the transpose of Base with the axes of Shape reversed
	Reshaped   bool     // the chain has views with sizes or axes of their own, even where Shape is that of Base
	Trouble    Reason   // why the chain is not supported, none if it is; other fields are then unset
}

// Trace finds the constant that v is a view, transpose or cast of. It returns nil if there is none.
func Trace(v *ir.Value) *Operand {
	var path []*ir.Node // from v to the constant
	for ; v != nil && v.Const == nil; v = v.Producer().Input(0) {
		n := v.Producer()
		if n == nil || !ir.DefaultDomain(n.Op.Domain) || n.Outputs[0] != v || chain[n.Op.Type] == nil {
			return nil
		}
		path = append(path, n)
	}
	if v == nil {
		return nil
	}
	o := &Operand{Base: v, Shape: v.Const.Shape, Elem: v.Const.DType}
	// From the constant on, as the effect of each operator depends on the shape before it.
	for _, n := range slices.Backward(path) {
		if o.Trouble = FromCaller(n); o.Trouble.None() {
			chain[n.Op.Type](o, n)
		}
		if !o.Trouble.None() {
			break
		}
	}
	return o
}

// FromCaller is the reason of n, a node of a function, if each call of the function sets an attribute of n.
func FromCaller(n *ir.Node) Reason {
	for _, a := range n.Attrs {
		if a.Ref != "" {
			return Reason{Code: CallerAttribute, Detail: a.Name}.At(n)
		}
	}
	return Reason{}
}

// chain maps operators to their effect on an operand. The output of any other operator is an activation, not a weight.
var chain = map[string]func(*Operand, *ir.Node){
	"Identity":  func(*Operand, *ir.Node) {},
	"Cast":      (*Operand).cast,
	"Flatten":   (*Operand).flatten,
	"Transpose": (*Operand).transpose,
	"Reshape":   (*Operand).reshape,
	"Squeeze":   (*Operand).squeeze,
	"Unsqueeze": (*Operand).unsqueeze,
}

func (o *Operand) trouble(n *ir.Node, what string) {
	o.Trouble = Reason{Code: View, Detail: what}.At(n)
}

func (o *Operand) cast(n *ir.Node) {
	to := ir.DType(n.Int("to", 0))
	if !to.IsFloat() || !o.Elem.IsFloat() {
		o.trouble(n, "cast from or to a type other than float")
		return
	}
	o.Elem = to
}

func (o *Operand) transpose(n *ir.Node) {
	perm := []int64(nil)
	if a := n.Attr("perm"); a != nil {
		perm = a.Ints
	}
	if perm == nil { // the default reverses the axes
		for i := range o.Shape {
			perm = append(perm, int64(len(o.Shape)-1-i))
		}
	}
	switch {
	// Only the transposes of a matrix are followed: Transposed is all that a consumer needs to read Base in its own
	// order.
	case len(perm) == len(o.Shape) && slices.IsSorted(perm):
	case len(o.Shape) == 2 && slices.Equal(perm, []int64{1, 0}):
		o.Shape = []int64{o.Shape[1], o.Shape[0]}
		o.Transposed = !o.Transposed
	default:
		o.trouble(n, "permutation of more than two axes")
	}
}

// setShape sets a new shape of the same data.
func (o *Operand) setShape(n *ir.Node, shape []int64) {
	if o.Transposed {
		// Its elements are not in the order of Base's bytes, which no shape expresses.
		o.trouble(n, "reshaped transpose")
		return
	}
	if (ir.Spec{Shape: shape}).Elems() != (ir.Spec{Shape: o.Shape}).Elems() ||
		slices.Min(append(slices.Clone(shape), 0)) < 0 {
		o.trouble(n, "other number of elements")
		return
	}
	o.Shape, o.Reshaped = shape, true
}

func (o *Operand) reshape(n *ir.Node) {
	want, ok := n.Input(1).Ints()
	if !ok {
		o.trouble(n, "shape not constant")
		return
	}
	known, infer := int64(1), -1
	for i, d := range want {
		// Reshape: 0 copies the size of the input, unless allowzero is set.
		if d == 0 && n.Int("allowzero", 0) == 0 && i < len(o.Shape) {
			want[i] = o.Shape[i]
		}
		if d == -1 {
			infer = i
			continue
		}
		known *= want[i]
	}
	if infer >= 0 && known > 0 {
		want[infer] = (ir.Spec{Shape: o.Shape}).Elems() / known
	}
	o.setShape(n, want)
}

func (o *Operand) flatten(n *ir.Node) {
	axis, rank := int(n.Int("axis", 1)), len(o.Shape)
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis > rank {
		o.trouble(n, "axis out of range")
		return
	}
	o.setShape(n, []int64{ir.Spec{Shape: o.Shape[:axis]}.Elems(), ir.Spec{Shape: o.Shape[axis:]}.Elems()})
}

// axesOf are the axes of Squeeze or Unsqueeze; nil for none.
func axesOf(n *ir.Node) ([]int64, bool) {
	if a := n.Attr("axes"); a != nil {
		return slices.Clone(a.Ints), true
	}
	if n.Input(1) == nil {
		return nil, true
	}
	return n.Input(1).Ints()
}

func (o *Operand) squeeze(n *ir.Node) {
	axes, ok := axesOf(n)
	if !ok {
		o.trouble(n, "axes not constant")
		return
	}
	var shape []int64
	for i, d := range o.Shape {
		drop := slices.Contains(axes, int64(i)) || slices.Contains(axes, int64(i-len(o.Shape)))
		if axes == nil {
			// Squeeze without axes removes all of size 1.
			drop = d == 1
		}
		if !drop {
			shape = append(shape, d)
		}
	}
	o.setShape(n, shape)
}

func (o *Operand) unsqueeze(n *ir.Node) {
	axes, ok := axesOf(n)
	rank := len(o.Shape) + len(axes)
	if !ok || len(axes) == 0 {
		o.trouble(n, "axes not constant")
		return
	}
	var shape []int64
	rest := o.Shape
	for i := range rank {
		if slices.Contains(axes, int64(i)) || slices.Contains(axes, int64(i-rank)) {
			shape = append(shape, 1)
			continue
		}
		if len(rest) == 0 {
			break
		}
		shape, rest = append(shape, rest[0]), rest[1:]
	}
	o.setShape(n, shape)
}
