package pass

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// IsWeight reports whether t has a float data type and rank 1 or more.
func IsWeight(t *ir.Tensor) bool { return t.DType.IsFloat() && len(t.Shape) > 0 }

// Weights are the model's float constants of rank 1 or more, in file order.
func Weights(m *ir.Model) []*ir.Value {
	var vs []*ir.Value
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if IsWeight(v.Const) {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// A Weight is a constant that is the weight input of operators, with these uses.
type Weight struct {
	Value     *ir.Value
	Consumers []Consumer
}

// A Consumer is an operator's input that holds a weight.
type Consumer struct {
	ir.Use
	Input   operator.Input
	Operand *Operand // the constant as the input of the operator
}

// Axes are the axes of the operand; ok is false if they or the operand's shape are unknown.
func (u Consumer) Axes() (axes operator.Axes, ok bool) {
	if !u.Operand.Trouble.None() {
		return operator.Axes{}, false
	}
	return u.Input.Axes(u.Node, len(u.Operand.Shape))
}

// Nodes are the operators whose weight is w, each once, in the order of the model.
func (w *Weight) Nodes() []*ir.Node {
	var ns []*ir.Node
	for _, u := range w.Consumers {
		if !slices.Contains(ns, u.Node) {
			ns = append(ns, u.Node)
		}
	}
	return ns
}

// UsedWeights are the constants that are weight inputs of operators, in the order of their first consumers. Supported
// filters the uses.
func UsedWeights(m *ir.Model, supported func(Consumer) bool) []*Weight {
	var list []*Weight
	by := map[*ir.Value]*Weight{}
	for n := range m.Nodes() {
		for _, in := range operator.Of(n).Weights() {
			o := Trace(n.Input(in.Index))
			u := Consumer{ir.Use{Node: n, Index: in.Index}, in, o}
			if o == nil || !supported(u) {
				continue
			}
			w := by[o.Base]
			if w == nil {
				w = &Weight{Value: o.Base}
				by[o.Base] = w
				list = append(list, w)
			}
			w.Consumers = append(w.Consumers, u)
		}
	}
	return list
}

// isQuantized reports whether v holds quantized values for some operator.
func isQuantized(v *ir.Value) bool {
	return !v.Const.DType.IsFloat() && slices.ContainsFunc(LeafUses(v), func(u ir.Use) bool {
		return u.Node != nil && operator.Of(u.Node).Input(u.Index).Quantized
	})
}

// IsQuantizationParam reports whether all uses of v are as scale, zero point or other parameter of quantized constants,
// whose row in the ledger includes it.
func IsQuantizationParam(v *ir.Value) bool {
	uses := LeafUses(v)
	return len(uses) > 0 && !slices.ContainsFunc(uses, func(u ir.Use) bool {
		if u.Node == nil {
			return true
		}
		in, ok := operator.Of(u.Node).QuantizedBy(u.Index)
		if !ok {
			return true
		}
		w := Trace(u.Node.Input(in.Index))
		// A scalar has no row that could include its scale.
		return w == nil || len(w.Base.Const.Shape) == 0
	})
}

// StoredSmaller reports whether t is expanded from other tensors of fewer bytes when it is read, as a sparse
// initializer is. Values in a typed field of the file, such as float16 in int32_data, are decoded from no tensor.
func StoredSmaller(t *ir.Tensor) bool {
	o, ok := t.Source.(ir.Output)
	if !ok || len(o.Of.In) == 0 {
		return false
	}
	held := int64(0)
	for _, in := range o.Of.In {
		held += in.Bytes()
	}
	return held < t.Bytes()
}
