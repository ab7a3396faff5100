package precision

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// A kind is the class of a value's type.
type kind uint8

const (
	unknown kind = iota
	single       // a float32 tensor
	other
)

func kindOf(dt ir.DType) kind {
	switch dt {
	case ir.Undefined:
		return unknown
	case ir.Float:
		return single
	}
	return other
}

// kinds infers the kinds of values: from the model's type information, else from the operators' signatures.
type kinds struct {
	calls map[*ir.Function][]*ir.Node
	known map[*ir.Value]kind
}

func (k *kinds) of(v *ir.Value) kind {
	if v == nil {
		return unknown
	}
	// Two values of one name: type information of the name may be of the other one.
	if v.Ambiguous {
		return unknown
	}
	if v.Const != nil {
		return kindOf(v.Const.DType)
	}
	if v.Type != nil && v.Type.Elem != ir.Undefined {
		return kindOf(v.Type.Elem)
	}
	// Each value once: chains of operators without type information are followed to their start.
	if found, ok := k.known[v]; ok {
		return found
	}
	k.known[v] = unknown // terminates cycles
	k.known[v] = k.derive(v)
	return k.known[v]
}

func (k *kinds) derive(v *ir.Value) kind {
	n := v.Producer()
	if n == nil {
		return k.argument(v)
	}
	i := index(n.Outputs, v)
	if f := n.Callee(); f != nil {
		return k.at(f.Body.Outputs, i)
	}
	if body, j := bodyOutput(n, i); body != nil {
		return k.at(body.Outputs, j)
	}
	in, out, ok := signature(n)
	p, found := out.At(i)
	if !ok || !found {
		return unknown
	}
	if dt, ok := stated(n); ok && i == 0 {
		return kindOf(dt)
	}
	return k.variable(n, in, p)
}

// variable is the kind of p, from another input of the same type variable, or from its allowed types.
func (k *kinds) variable(n *ir.Node, in opset.Params, p opset.Param) kind {
	if !p.Takes(ir.Float) {
		return other
	}
	if p.Var == "" {
		return single
	}
	for i, v := range n.Inputs() {
		if q, ok := in.At(i); ok && q.Var == p.Var && !q.Mixed && v != nil {
			if found := k.of(v); found != unknown {
				return found
			}
		}
	}
	return unknown
}

// argument is the kind of an input of a subgraph or function: that of the argument.
func (k *kinds) argument(v *ir.Value) kind {
	g := v.Graph()
	i := index(g.Inputs, v)
	if i < 0 {
		return unknown
	}
	if g.Owner != nil {
		if j := ownerInput(g.Owner, i); j >= 0 {
			return k.of(g.Owner.Input(j))
		}
		return unknown
	}
	for _, n := range k.calls[g.Function()] {
		if found := k.of(n.Input(i)); found != unknown {
			return found
		}
	}
	return unknown
}

func (k *kinds) at(vs []*ir.Value, i int) kind {
	if i < 0 || i >= len(vs) {
		return unknown
	}
	return k.of(vs[i])
}

// stated is the type of n's first output if an attribute sets it.
func stated(n *ir.Node) (ir.DType, bool) {
	f := operator.Of(n)
	if f.ElemAttr == "" || f.QuantizedOutput {
		return ir.Undefined, false
	}
	switch a := n.Attr(f.ElemAttr); {
	case a == nil && n.Op.Is("DequantizeLinear"):
		return scaleType(n), true
	case a == nil && f.Random && len(n.Inputs()) > 0:
		return ir.Undefined, false // the input's type
	case a == nil:
		return ir.Float, true
	case a.Ref != "":
		return ir.Undefined, true
	case a.Tensor != nil:
		return a.Tensor.DType, true
	case a.I != 0:
		return ir.DType(a.I), true
	}
	return ir.Undefined, true
}

// scaleType is the default output type of DequantizeLinear.
func scaleType(n *ir.Node) ir.DType {
	if s := n.Input(1); s != nil && s.Const != nil {
		return s.Const.DType
	}
	return opset.Elem(n.Input(1))
}

// signature is the signature of n if it is an operator of ONNX or of ONNX Runtime.
func signature(n *ir.Node) (in, out opset.Params, ok bool) {
	if n.Callee() != nil {
		return nil, nil, false
	}
	return opset.Signature(n.Op, opset.Version(n))
}

func index(vs []*ir.Value, v *ir.Value) int {
	for i, w := range vs {
		if w == v {
			return i
		}
	}
	return -1
}
