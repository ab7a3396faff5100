package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A quantizedLayer is a Conv, MatMul or Gemm of an activation and a constant.
type quantizedLayer struct {
	node     *ir.Node
	weight   *ir.Value
	consumer *weights.Consumer // nil for Conv
	bias     *pass.Operand     // input 2; nil if there is none
	encoding *spec.PerChannel
	float    bool // its activations are kept in float
}

// layersOf finds the layers of the main graph that support quantized activations, by node. Other weights are left to
// weight-int8.
func (s *Quantizer) layersOf(step *pass.Step) map[*ir.Node]*quantizedLayer {
	found := map[*ir.Node]*quantizedLayer{}
	for n := range step.Model.Graph.Nodes() {
		if l := s.layer(n); l != nil {
			found[n] = l
		}
	}
	// Removed afterwards: whether a weight is refused depends on all layers that read it, and the order of a map must
	// not.
	var refused []*ir.Node
	for n, l := range found {
		if s.refuses(step, l, found) {
			refused = append(refused, n)
		}
	}
	for _, n := range refused {
		delete(found, n)
	}
	return found
}

// layer describes n, nil if it is none.
func (s *Quantizer) layer(n *ir.Node) *quantizedLayer {
	switch {
	case s.unfit[n] || !pass.FromCaller(n).None():
		return nil
	case n.Op.Is("Conv"):
		return s.convolution(n)
	}
	k := weights.ConsumerAt(n, false)
	if k == nil || s.floatNodes[n] || k.Side != weights.Right || len(k.Shape) != 2 || !k.Unsupported.None() ||
		k.Elem != ir.Float {
		return nil
	}
	return s.matrixLayer(k)
}

func (s *Quantizer) convolution(n *ir.Node) *quantizedLayer {
	o := pass.Trace(n.Input(1))
	if o == nil || !o.Trouble.None() || o.Transposed || o.Elem != ir.Float || len(o.Shape) < 3 || n.Input(0) == nil ||
		n.Input(0).Const != nil {
		return nil
	}
	// With float activations a convolution still has a quantized weight, and its bias is corrected. Products are left
	// to weight-int8 then.
	l := &quantizedLayer{node: n, weight: o.Base, float: s.floatNodes[n]}
	l.encoding = &spec.PerChannel{Buffers: s.buffers, Weight: o.Base.Const, Shape: o.Shape, Spec: s.weightSpec(), Axis: 0}
	return s.withScales(l)
}

func (s *Quantizer) matrixLayer(st *weights.Consumer) *quantizedLayer {
	n := st.Node
	l := &quantizedLayer{node: n, weight: pass.Trace(n.Input(st.Use.Index)).Base, consumer: st}
	// A quantized bias is added to the sums of products, whose scale factors would change, and is corrected by the means of
	// the input's columns. Without a bias alpha scales the sums alone, and beta has no effect.
	if n.Op.Is("Gemm") && n.Input(2) != nil &&
		(n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1) {
		return nil
	}
	l.encoding = &spec.PerChannel{Buffers: s.buffers, Weight: l.weight.Const, Shape: st.BaseShape(), Spec: s.weightSpec(),
		Axis: st.ChannelAxis(), Transpose: st.Transposed}
	return s.withScales(l)
}

// withScales sets the granularity of l's scales. It returns nil if l's bias is not one element per channel.
func (s *Quantizer) withScales(l *quantizedLayer) *quantizedLayer {
	channels := l.encoding.Shape[l.encoding.Axis]
	if v := l.node.Input(2); v != nil {
		if l.bias = biasOf(v, channels); l.bias == nil {
			return nil
		}
	}
	if s.Spec.PerTensor {
		l.encoding.Layout, l.encoding.Axis = spec.PerTensorLayout(l.encoding.Weight.Elems()), -1
		return l
	}
	l.encoding.Layout, l.encoding.ScaleShape = spec.PerAxisLayout(l.encoding.Shape, l.encoding.Axis), []int64{channels}
	for range l.encoding.Shape[1:] {
		if l.float { // they multiply the weight
			l.encoding.ScaleShape = append(l.encoding.ScaleShape, 1)
		}
	}
	return l
}

// biasOf is v as a bias: a constant with one element per channel in the last axis, which may be behind views. It is nil
// if v is none.
func biasOf(v *ir.Value, channels int64) *pass.Operand {
	o := pass.Trace(v)
	if o == nil || !o.Trouble.None() || o.Transposed || o.Elem != ir.Float || o.Base.Const.DType != ir.Float ||
		len(o.Shape) == 0 || o.Base.Const.Elems() != channels || o.Shape[len(o.Shape)-1] != channels {
		return nil
	}
	return o
}

// weightSpec is the scheme of weights: QLinearConv has no zero points per channel.
func (s *Quantizer) weightSpec() spec.QuantSpec {
	w := s.Spec
	// Also the scale of a channel of zeros matters: it is that of the bias.
	w.Symmetric, w.BiasScales = w.Symmetric || !w.PerTensor, true
	return w
}

// refuses reports whether l's weight is not selected, cannot be replaced, or would grow.
func (s *Quantizer) refuses(step *pass.Step, l *quantizedLayer, all map[*ir.Node]*quantizedLayer) bool {
	w := l.weight
	if w.Ambiguous || w.Graph() != step.Model.Graph || w.Const.DType != ir.Float ||
		step.Select.Excludes(w, pass.Consumers(w)) {
		return true
	}
	leaves := pass.LeafUses(w)
	// For CPUs without VNNI ONNX Runtime converts int8 weights to uint8, and fails if they have several consumers.
	l.encoding.Spec.Unsigned = l.encoding.Spec.Unsigned || len(leaves) > 1
	for _, u := range leaves {
		// The weight is stored once, in the form of the integer kernels: any other reader would need the floats as well.
		o := all[u.Node]
		if o == nil || o.weight != w || u.Index != 1 || !o.sameEncoding(l) {
			return true
		}
	}
	return w.Const.Bytes() <= l.encoding.Bytes()+rewrite.GraphBytes(rewrite.DequantizeBytes, 1, w)
}

// sameEncoding reports whether both can read the same quantized weight.
func (l *quantizedLayer) sameEncoding(o *quantizedLayer) bool {
	return l.float == o.float && l.encoding.Axis == o.encoding.Axis && l.encoding.Transpose == o.encoding.Transpose &&
		slices.Equal(l.encoding.Shape, o.encoding.Shape)
}

// row is the ledger row of l's weight.
func (s *Quantizer) row(l *quantizedLayer, st *rewrite.PerChannel) pass.Row {
	r := pass.Row{Form: qdqForm, After: st.Parts(), Restore: st.Restore, Bound: st.Bound()}
	if l.float {
		r.Form = pass.CastMul
	}
	if !s.Spec.Symmetric && l.encoding.Spec.Symmetric {
		r.Notes = pass.Notes(pass.Reason{Code: pass.Symmetric})
	}
	r.Notes = append(r.Notes, pass.Notes(weights.RemoveFromInputs(l.weight))...)
	return r
}
