package opset

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A draft is a node as it will be. Rules change drafts, so that a chain of rules
// sees what the one before made, and the model changes only once all nodes have
// passed. Attributes are replaced in the draft's own list.
type draft struct {
	p       *planner
	node    *ir.Node // its node, nil for a new one
	op      string
	attrs   []*ir.Attr
	in      []operand
	outputs int    // how many of the node's outputs stay
	tail    *draft // a new node that makes the first output in its stead
	changed bool

	result *ir.Value // a new node's output, once it is in the graph
}

// An operand is an input of a draft: a value, a new constant or a new node's
// output. The zero operand is an absent input.
type operand struct {
	value  *ir.Value
	tensor *ir.Tensor
	node   *draft
}

func newDraft(p *planner, n *ir.Node) *draft {
	d := &draft{p: p, node: n, op: n.Op.Type, attrs: slices.Clone(n.Attrs), outputs: len(n.Outputs)}
	for _, v := range n.Inputs() {
		d.in = append(d.in, operand{value: v})
	}
	return d
}

// raise takes d through every version of its operator after from.
func (d *draft) raise(from int64) error {
	for at := from; ; {
		o, ok := lookup(d.op)
		switch {
		case runtimeOwn(d.op) && (!ok || o.since[0] > d.p.to):
			return nil
		case runtimeOwn(d.op) && o.since[0] > at:
			return d.oneType()
		case !ok:
			return reason("is not an operator of the standard")
		case o.since[0] > at:
			return reason(fmt.Sprintf("exists from opset %d on", o.since[0]))
		}
		i := slices.IndexFunc(o.since, func(v int64) bool { return v > at })
		if i < 0 || o.since[i] > d.p.to {
			return nil
		}
		at = o.since[i]
		// A rule may rename the operator, so the next step is looked up anew.
		if do := d.p.rules[step{d.op, at}]; do != nil {
			if err := do(d); err != nil {
				return err
			}
		}
	}
}

// runtimeOwn reports operators that ONNX Runtime's optimizer writes into models of
// any opset, in the default domain. They mean the same in all; the standard took
// LayerNormalization over in opset 17, and has not changed it since.
func runtimeOwn(op string) bool {
	return op == "LayerNormalization" || op == "SimplifiedLayerNormalization"
}

// oneType refuses inputs of several element types, as the standard does.
func (d *draft) oneType() error {
	for _, o := range d.in {
		if t := d.elem(o); t == ir.Undefined || t != d.elem(d.in[0]) {
			return reason("its inputs are not known to have one element type, which they need where it is standard")
		}
	}
	return nil
}

// rename makes d another operator.
func (d *draft) rename(op string) { d.op, d.changed = op, true }

// attr is the attribute of that name, nil if there is none. One whose value the
// caller of a function chooses is an error: no rule could tell what it will be.
func (d *draft) attr(name string) (*ir.Attr, error) {
	i := d.index(name)
	if i < 0 {
		return nil, nil
	}
	if a := d.attrs[i]; a.Ref == "" {
		return a, nil
	}
	return nil, reason("attribute " + name + " is a parameter of its function")
}

func (d *draft) index(name string) int {
	return slices.IndexFunc(d.attrs, func(a *ir.Attr) bool { return a.Name == name })
}

// integer is the integer attribute of that name, or def.
func (d *draft) integer(name string, def int64) (int64, error) {
	a, err := d.attr(name)
	if a == nil || err != nil {
		return def, err
	}
	return a.I, nil
}

// text is the string attribute of that name, or def.
func (d *draft) text(name, def string) (string, error) {
	a, err := d.attr(name)
	if a == nil || err != nil {
		return def, err
	}
	return a.S, nil
}

// takeAttr returns the attribute of that name and removes it.
func (d *draft) takeAttr(name string) (*ir.Attr, error) {
	a, err := d.attr(name)
	if a != nil {
		d.drop(name)
	}
	return a, err
}

func (d *draft) drop(name string) {
	if i := d.index(name); i >= 0 {
		d.attrs = slices.Delete(d.attrs, i, i+1)
		d.changed = true
	}
}

// set replaces or adds an attribute.
func (d *draft) set(a *ir.Attr) {
	d.drop(a.Name)
	d.attrs = append(d.attrs, a)
	d.changed = true
}

// input is d's input i, absent beyond the last.
func (d *draft) input(i int) operand {
	if i >= len(d.in) {
		return operand{}
	}
	return d.in[i]
}

// setInput makes o the input i; inputs between the last and i are absent.
func (d *draft) setInput(i int, o operand) {
	for len(d.in) <= i {
		d.in = append(d.in, operand{})
	}
	d.in[i], d.changed = o, true
}

func (o operand) absent() bool { return o.value == nil && o.tensor == nil && o.node == nil }

// ints returns a constant list.
func ints(is []int64) operand {
	return operand{tensor: intTensor([]int64{int64(len(is))}, is)}
}

func scalarInt(i int64) operand { return operand{tensor: intTensor(nil, []int64{i})} }

func intTensor(shape, is []int64) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: shape}, Source: ir.Ints(is...)}
}

func floats(fs []float32) operand { return operand{tensor: floatTensor([]int64{int64(len(fs))}, fs)} }

func floatTensor(shape []int64, fs []float32) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}, Source: ir.Floats(fs...)}
}

// like returns the scalar f in the element type of o, by a Cast where that is not
// float: the runtime's own rounding is then the one that the attribute had.
func (d *draft) like(f float32, o operand) (operand, error) {
	c := operand{tensor: floatTensor(nil, []float32{f})}
	switch t := d.elem(o); {
	case t == ir.Float:
		return c, nil
	case t != ir.Undefined:
		return d.new("Cast", []operand{c}, ir.IntAttr("to", int64(t))), nil
	case d.p.to >= 15:
		return d.new("CastLike", []operand{c, o}), nil
	}
	return operand{}, reason("the element type of its input is not known")
}

// new returns the output of a new node of the target version.
func (d *draft) new(op string, in []operand, attrs ...*ir.Attr) operand {
	return operand{node: &draft{p: d.p, op: op, in: in, attrs: attrs}}
}

// rank, shape and elem say what is known of o; new nodes count as unknown.
func (d *draft) rank(o operand) (int, bool) {
	s, ok := d.shape(o)
	return len(s), ok
}

func (d *draft) shape(o operand) ([]ir.Dim, bool) {
	if o.value == nil {
		return nil, false
	}
	return d.p.shapes.shape(o.value)
}

func (d *draft) elem(o operand) ir.DType {
	if o.value == nil {
		return ir.Undefined
	}
	return d.p.shapes.elem(o.value)
}

// floatsOf reads a small constant of float elements; nil if o is none.
func (d *draft) floatsOf(o operand) ([]float32, error) {
	t := o.tensor
	if t == nil && o.value != nil && fixed(o.value) {
		t = o.value.Const
	}
	if t == nil || t.DType != ir.Float || t.Elems() > maxElems {
		return nil, nil
	}
	b, err := d.p.eval.ReadAll(d.p.ctx, t)
	if err != nil {
		return nil, err
	}
	fs := make([]float32, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		fs = append(fs, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return fs, nil
}
