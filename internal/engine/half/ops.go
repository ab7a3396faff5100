package half

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Lookup finds the row of an operator at a version of its domain, nil if there is none.
type Lookup func(id ir.OpID, version int64) *op.Op

// Ops are the rows of all forms. A node's attributes are those of the operator, those of Attributes, and domain and
// version of the operator.
func Ops(find Lookup) []op.Op {
	var ops []op.Op
	for _, typ := range slices.Sorted(maps.Keys(forms)) {
		f := forms[typ]
		if f.Mixed != "" {
			continue
		}
		k := kind{f, typ, find}
		o := op.Op{Domain: Domain, Type: typ, Since: 1, Shape: k.shape, Work: k.work, Run: k.run}
		if f.flat {
			o.InPlace = f.In
		}
		ops = append(ops, o)
	}
	return ops
}

// A kind is a form of one operator.
type kind struct {
	Form
	typ  string
	find Lookup
}

// inner is the operator, and its node.
func (k *kind) inner(n *op.Node) (*op.Op, *op.Node, error) {
	id := ir.OpID{Domain: n.Text("domain", ""), Type: k.typ}
	o := k.find(id, n.Int("version", 1))
	if o == nil || o.Shape == nil {
		return nil, nil, fmt.Errorf("attributes domain and version: no operator %s of version %d", id,
			n.Int("version", 1))
	}
	node := *n
	node.ID, node.Version = id, n.Int("version", 1)
	node.Const, node.Fixed = nil, nil // they are not prepared
	return o, &node, nil
}

// floats are the float32 specs of in for the operator.
func floats(in []*ir.Array) []*ir.Array {
	out := slices.Clone(in)
	for i, a := range in {
		if a != nil && a.DType == ir.Float16 {
			out[i] = &ir.Array{DType: ir.Float, Shape: a.Shape}
		}
	}
	return out
}

func (k *kind) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	o, node, err := k.inner(n)
	if err != nil {
		return nil, err
	}
	specs, err := o.Shape(node, floats(in))
	if err != nil {
		return nil, err
	}
	if err := k.check(in, specs); err != nil {
		return nil, err
	}
	for _, i := range n.Ints("halves") {
		if i < 0 || i >= int64(len(specs)) || !slices.Contains(k.Out, int(i)) || specs[i].DType != ir.Float {
			return nil, fmt.Errorf("attribute halves: output %d cannot be %s", i, ir.Float16)
		}
		specs[i].DType = ir.Float16
	}
	return specs, nil
}

// check reports inputs and outputs that cannot be chunked.
func (k *kind) check(in []*ir.Array, out []ir.Spec) error {
	y := out[0]
	for i, s := range out {
		if slices.Contains(k.Out, i) && !k.Fits(s.Shape, y.Shape) || i == 0 && s.DType != ir.Float {
			return fmt.Errorf("output %d is %s, which cannot be chunked", i, s)
		}
	}
	for i, a := range in {
		switch {
		case a == nil:
		case slices.Contains(k.In, i) && (a.Kind != ir.Dense || a.DType == ir.String || a.DType.Bits()%8 != 0),
			a.DType == ir.Float16 && !(slices.Contains(k.In, i) && k.Fits(a.Shape, y.Shape)):
			return fmt.Errorf("input %d is %s, which cannot be chunked with an output of shape %v", i, a, y.Shape)
		}
	}
	return nil
}

func (k *kind) work(n *op.Node, in []*ir.Array, workers int) int64 {
	c, err := k.chunks(n, in)
	if err != nil {
		return 0
	}
	return c.work(workers)
}

func (k *kind) run(call *op.Call) error {
	c, err := k.chunks(call.Node, call.In)
	if err != nil {
		return err
	}
	return c.run(call)
}
