package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// insert adds fake quantization to a graph, and the arrays of its inputs to feeds. f may be nil.
func (f *fakeQuant) insert(tape *grad.Tape, params *parameters, feeds map[string]*ir.Array) {
	if f == nil {
		return
	}
	b := &fakeQuantBuilder{Tape: tape, feeds: feeds, weights: map[*ir.Value]bool{}, quantized: map[*ir.Value]*ir.Value{}}
	for _, param := range tape.Params {
		if p := params.byName[param.Name]; p != nil && p.shared != nil {
			b.tie(param, p)
		}
		if w := f.weights[param.Name]; w != nil {
			b.weight(param.Value, w.array)
		}
	}
	// Collected first: the loop inserts nodes before those that it visits.
	for _, n := range slices.Collect(tape.Graph().Nodes()) {
		for i, v := range n.Inputs() {
			switch a := f.activations[edgeOf(n, i)]; {
			case v == nil || v.Const != nil:
			case a != nil:
				n.SetInput(i, b.once(v, func() *ir.Value { return b.static(n, v, a) }))
			case f.dynamic && i < 2 && len(n.Inputs()) >= 2 && operator.Of(n).Product() && b.isQuantizedWeight(n.Input(1-i)):
				n.SetInput(i, b.once(v, func() *ir.Value { return b.dynamic(n, v) }))
			}
		}
	}
}

// A fakeQuantBuilder adds fake quantization to a graph.
type fakeQuantBuilder struct {
	*grad.Tape
	feeds     map[string]*ir.Array
	weights   map[*ir.Value]bool      // fake-quantized weights
	quantized map[*ir.Value]*ir.Value // fake-quantized activations
}

// weight replaces a parameter by its dequantized values, with a straight-through gradient.
func (b *fakeQuantBuilder) weight(v *ir.Value, values *ir.Array) {
	b.weights[b.replace(v, func() *ir.Node {
		return b.New(straightThrough, []*ir.Value{b.feed(v.Name+".quantized", values), v})
	})] = true
}

// tie replaces a parameter by the entries of its elements, and makes the codebook the parameter.
func (b *fakeQuantBuilder) tie(param *grad.Param, p *parameter) {
	codebook := b.Input(param.Name+".codebook", p.array.DType, p.array.Shape...)
	in := []*ir.Value{codebook, b.feed(param.Name+".indices", p.shared.indices)}
	if p.shared.scales != nil {
		in = append(in, b.feed(param.Name+".scales", p.shared.scales))
	}
	b.replace(param.Value, func() *ir.Node {
		return b.New(sharedWeightOp, in, ir.IntAttr("block", p.shared.row.Sharing.Block))
	})
	// The weight itself is no input any more. Gradients are by the codebook, whose elements add up what each entry has.
	b.Graph().RemoveInput(param.Value)
	param.Value = codebook
}

// replace replaces the uses of v by the output of the node of make, which it returns.
func (b *fakeQuantBuilder) replace(v *ir.Value, make func() *ir.Node) *ir.Value {
	// Before make, whose node may consume v itself.
	uses := slices.Clone(v.Uses())
	n := make()
	b.Graph().InsertBefore(b.Graph().First(), n)
	for _, u := range uses {
		if u.Node != nil {
			u.Node.SetInput(u.Index, n.Outputs[0])
		}
	}
	return n.Outputs[0]
}

// The engine's operators for weights in QAT.
var (
	straightThrough = ir.OpID{Domain: "mcompress", Type: "StraightThrough"}
	sharedWeightOp  = ir.OpID{Domain: "mcompress", Type: "SharedWeight"}
)

// feed adds an input for an array.
func (b *fakeQuantBuilder) feed(hint string, a *ir.Array) *ir.Value {
	in := b.Input(hint, a.DType, a.Shape...)
	b.feeds[in.Name] = a
	return in
}

// isQuantizedWeight reports whether v is a fake-quantized weight or a view or transpose of one.
func (b *fakeQuantBuilder) isQuantizedWeight(v *ir.Value) bool {
	for v != nil && !b.weights[v] {
		n := v.Producer()
		if n == nil || !operator.Of(n).Move.Keeps() {
			return false
		}
		v = n.Input(0)
	}
	return v != nil
}

// once returns the fake-quantized v for all consumers of v.
func (b *fakeQuantBuilder) once(v *ir.Value, quantize func() *ir.Value) *ir.Value {
	if b.quantized[v] == nil {
		b.quantized[v] = quantize()
	}
	return b.quantized[v]
}

// static quantizes v with a static scale. Outside the clipping range the gradient is 0, as that of Clip.
func (b *fakeQuantBuilder) static(at *ir.Node, v *ir.Value, a *fakeQuantActivation) *ir.Value {
	scale, zero := b.feed("scale", a.scale), b.feed("zero", a.zero)
	q := b.insertBefore(at, "QuantizeLinear", v, scale, zero)
	clipped := b.insertBefore(at, "Clip", v, b.feed("low", a.low), b.feed("high", a.high))
	return b.straightThrough(at, b.insertBefore(at, "DequantizeLinear", q, scale, zero), clipped)
}

// dynamic quantizes v by its own range.
func (b *fakeQuantBuilder) dynamic(at *ir.Node, v *ir.Value) *ir.Value {
	g := b.Graph()
	q := g.NewNode(ir.OpID{Domain: op.Newest, Type: "DynamicQuantizeLinear"}, []*ir.Value{v})
	q.SetOutputs(g.NewValue("q"), g.NewValue("scale"), g.NewValue("zero"))
	g.InsertBefore(at, q)
	return b.straightThrough(at, b.insertBefore(at, "DequantizeLinear", q.Outputs...), v)
}

func (b *fakeQuantBuilder) insertBefore(at *ir.Node, typ string, in ...*ir.Value) *ir.Value {
	n := b.New(ir.OpID{Domain: op.Newest, Type: typ}, in)
	b.Graph().InsertBefore(at, n)
	return n.Outputs[0]
}

// straightThrough is q in the forward pass, and x in the backward pass.
func (b *fakeQuantBuilder) straightThrough(at *ir.Node, q, x *ir.Value) *ir.Value {
	n := b.New(straightThrough, []*ir.Value{q, x})
	b.Graph().InsertBefore(at, n)
	return n.Outputs[0]
}
