package qdq

import (
	"bytes"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
)

// An emitter inserts QuantizeLinear and DequantizeLinear around quantized nodes.
type emitter struct {
	*Quantizer
	*quantizedGraph
	g            *ir.Graph
	known        map[string]calibrate.Summary
	scaleSources map[*ir.Value]string              // names of the values whose scales others use, before rewriting
	weights      map[*ir.Value]*ir.Value           // dequantized, by weight
	stored       map[*ir.Value]*rewrite.PerChannel // by weight
	biases       map[*ir.Value]bool                // that have ledger rows
}

// emit rewrites the graph.
func (s *Quantizer) emit(step *pass.Step, f *quantizedGraph, known map[string]calibrate.Summary) error {
	e := &emitter{Quantizer: s, quantizedGraph: f, g: step.Model.Graph, known: known, scaleSources: map[*ir.Value]string{},
		weights: map[*ir.Value]*ir.Value{}, stored: map[*ir.Value]*rewrite.PerChannel{}, biases: map[*ir.Value]bool{}}
	// Everything that depends on consumers and producers is read before the first node is inserted, as inserted nodes
	// would be among them.
	values := f.quantizedValues()
	for _, v := range values {
		e.scaleSources[v] = f.scaleSource(v).Name
	}
	var changes []func()
	for _, v := range values {
		changes = append(changes, e.value(v))
	}
	var layers []*quantizedLayer
	for n := range e.g.Nodes() {
		if l := f.layers[n]; l != nil {
			layers = append(layers, l)
		}
	}
	var separate []*ir.Node
	for _, l := range layers {
		if e.separatesBias(l.node) {
			separate = append(separate, l.node)
		}
		// While inputs are still the values that were observed: their names find scales and means.
		e.layer(l, e.scaleOf(l.node.Input(0)), e.known[l.node.Input(0).Name].Means)
	}
	for _, change := range changes {
		change()
	}
	for _, n := range separate {
		e.separateBias(n)
	}
	// Last, as it looks for the inserted nodes.
	e.protectFloatLayers()
	return nil
}

// protectFloatLayers keeps layers in float that are not quantized, or whose weights alone are. From 1.22 on, ONNX
// Runtime quantizes float weights of operators with a bias (Conv, ConvTranspose, Gemm) to 8 bits itself, at each level
// of optimization, where their inputs are dequantized and their outputs quantized: a layer that is kept in float
// because 8 bits are too few for it loses what they lose. It does not look behind Concat, which copies the activation.
func (e *emitter) protectFloatLayers() {
	copies := map[*ir.Value]*ir.Value{}
	for _, n := range slices.Collect(e.g.Nodes()) {
		x, w := n.Input(0), n.Input(1)
		if operator.Of(n).Input(2).Role != operator.Bias || x == nil || !dequantized(x) || w == nil || dequantized(w) ||
			!isQuantized(n.Outputs[0]) {
			continue
		}
		if copies[x] == nil {
			copies[x] = e.g.Insert(n, "Concat", []*ir.Value{x}, ir.IntAttr("axis", 0))
		}
		n.SetInput(0, copies[x])
	}
}

// isQuantized reports whether QuantizeLinear reads v, directly or behind operators without weights, each of which is
// the only reader.
func isQuantized(v *ir.Value) bool {
	for v != nil {
		// An output of the model as well does not prevent it.
		readers := slices.DeleteFunc(slices.Clone(v.Uses()), func(u ir.Use) bool { return u.Node == nil })
		if len(readers) != 1 || operator.Of(readers[0].Node).Layer() {
			return false
		}
		n := readers[0].Node
		if n.Op.Is("QuantizeLinear") {
			return true
		}
		v = n.Outputs[0]
	}
	return false
}

func dequantized(v *ir.Value) bool {
	return v.Producer() != nil && v.Producer().Op.Is("DequantizeLinear")
}

// scaleOf is the scale of v.
func (e *emitter) scaleOf(v *ir.Value) float32 {
	scale, _, _ := e.Activations.qparams(e.known[e.scaleSources[v]].Range)
	return scale
}

// value inspects consumers and producer of v, and returns a function that inserts its QuantizeLinear and
// DequantizeLinear.
func (e *emitter) value(v *ir.Value) func() {
	scale, zero, _ := e.Activations.qparams(e.known[e.scaleSources[v]].Range)
	in := []*ir.Value{e.step.Const(e.g, ir.Float, nil, ir.Floats(scale)),
		e.step.Const(e.g, e.Activations.DType, nil, e.Activations.constant(zero))}
	maker, exact := e.quantizedProducer(v), e.keepsFloat(v)
	var consumers []ir.Use
	for _, u := range v.Uses() {
		if e.readsQuantized(u) {
			consumers = append(consumers, u)
		}
	}
	// v is the output of a fused activation.
	if maker != nil && v.Producer() != maker {
		return func() { e.replaceActivation(v.Producer(), in) }
	}
	return func() {
		d, q := e.pair(v, in)
		// Float consumers read the value before rounding.
		if exact {
			for _, u := range consumers {
				u.Node.SetInput(u.Index, d.Outputs[0])
			}
			q.SetInput(0, v)
			return
		}
		v.ReplaceUses(d.Outputs[0])
		q.SetInput(0, v)
	}
}

// replaceActivation replaces the activation a, whose clipping the quantized range does.
func (e *emitter) replaceActivation(a *ir.Node, scale []*ir.Value) {
	pre := a.Input(0)
	d, q := e.pair(pre, scale)
	bounds := slices.Clone(a.Inputs()[1:])
	a.ReplaceBy(d.Outputs[0])
	q.SetInput(0, pre)
	for _, b := range bounds {
		if b != nil {
			b.Drop()
		}
	}
}

// pair inserts both nodes after the producer of v; the first one is not connected to it yet.
func (e *emitter) pair(v *ir.Value, scale []*ir.Value) (d, q *ir.Node) {
	at := e.g.First()
	if n := v.Producer(); n != nil {
		at = n.Next()
	}
	quantized := e.g.Insert(at, "QuantizeLinear", append([]*ir.Value{nil}, scale...))
	out := e.g.Insert(at, "DequantizeLinear", append([]*ir.Value{quantized}, scale...))
	return out.Producer(), quantized.Producer()
}

// layer quantizes l's weight and bias; scale is that of its input.
func (e *emitter) layer(l *quantizedLayer, scale float32, means []float64) {
	n, old := l.node, l.node.Input(1)
	n.SetInput(1, e.weight(l))
	old.Drop()
	if n.Op.Is("Gemm") {
		// Quantized weights of products are stored in the orientation of the product.
		n.RemoveAttr("transB")
	}
	if l.bias == nil {
		return
	}
	// ONNX Runtime quantizes float biases of Conv itself, of Gemm only before QuantizeLinear.
	b := &biasEncoding{encoding: l.encoding, bias: l.bias.Base.Const, shape: l.bias.Shape, weight: e.stored[l.weight],
		group: max(1, n.Int("group", 1)), activationScale: scale, float: l.float || e.FloatBias && l.consumer == nil ||
			e.separatesBias(n)}
	if !e.NoBiasCorrection {
		b.means = means
	}
	// A float bias that is not corrected stays as it is, with its row as a bias.
	if !b.float || b.means != nil {
		e.bias(l, b)
	}
}

// weight is l's dequantized weight, inserted before the first layer that reads it.
func (e *emitter) weight(l *quantizedLayer) *ir.Value {
	if d := e.weights[l.weight]; d != nil {
		return d
	}
	before, consumers := l.weight.Const, pass.Consumers(l.weight)
	st := rewrite.StorePerChannel(e.g, l.weight, l.encoding)
	if l.float {
		e.weights[l.weight], e.stored[l.weight] = rewrite.New(e.step).CastMul(st), st
		e.step.Ledger.Changed(l.weight, before, consumers, e.row(l, st))
		return e.weights[l.weight]
	}
	in := []*ir.Value{st.Quantized, st.ScaleValue}
	// Without zero points ONNX Runtime computes Gemm in float, and fails to convert weights of MatMul to uint8.
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	} else if st.Spec.ZeroPoint() != 0 || l.consumer != nil {
		n := int(st.Layout.NumScales())
		st.ExplicitZeroPoint = e.g.AddConst("z",
			&ir.Tensor{Spec: ir.Spec{DType: st.Spec.DType(), Shape: st.ScaleShape},
				Source: ir.Mem(bytes.Repeat([]byte{byte(st.Spec.ZeroPoint())}, n))})
		in = append(in, st.ExplicitZeroPoint)
	}
	var attrs []*ir.Attr
	if st.Axis >= 0 {
		axis := int64(0)
		if l.consumer != nil {
			axis = 1 // weights of products are stored in the orientation of the product
		}
		attrs = append(attrs, ir.IntAttr("axis", axis))
	}
	d := e.g.Insert(l.node, "DequantizeLinear", in, attrs...)
	e.weights[l.weight], e.stored[l.weight] = d, st
	e.step.Ledger.Changed(l.weight, before, consumers, e.row(l, st))
	return d
}
