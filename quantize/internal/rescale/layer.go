package rescale

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A Layer is a matrix product or convolution with a constant weight without other consumers, and its bias.
type Layer struct {
	Node            *ir.Node  // Conv, ConvTranspose, Gemm or MatMul
	Weight          *ir.Value // the stored constant
	Inputs, Outputs int64     // channels

	e       *Editor
	in, out axis
	place   Place    // of the output's channels
	add     *ir.Node // the Add that is a MatMul's bias, nil if there is none
}

// A Place is the channel axis of a value.
type Place struct {
	Rank  int // of the value; 1 means unknown if channels are the last axis
	After int // number of axes after it
}

// broadcastOpset is the first opset with NumPy-style broadcasting.
const broadcastOpset = 7

// Layer is the layer of which n is the product or the bias, or the reason why there is none.
func (e *Editor) Layer(n *ir.Node) (*Layer, pass.Reason) {
	if p := e.biased(n); p != nil {
		n = p
	}
	o, reason := e.weight(n)
	if !reason.None() {
		return nil, reason
	}
	at, reason := layouts[n.Op.Type](n, o)
	if !reason.None() {
		return nil, reason
	}
	l := &Layer{Node: n, Weight: o.Base, Inputs: at.inputs, Outputs: at.outputs, e: e, in: at.in, out: at.out}
	l.place = Place{Rank: len(o.Shape), After: len(o.Shape) - 2}
	if !l.Spatial() {
		// Products have channels on the last axis at any rank; a rank that is not known restricts the shapes of biases
		// only.
		rank, _ := opset.Rank(n.Outputs[0])
		l.place = Place{Rank: max(1, rank)}
	}
	// ONNX's MatMul has no bias: an Add after it is one, if it adds a constant to each channel.
	if n.Op.Is("MatMul") {
		l.add = e.bias(l)
	}
	// A bias that cannot be scaled with its channels prevents the layer from being scaled.
	if b := l.biasValue(); b != nil && !e.fits(b, l.Outputs, Place{Rank: l.place.Rank}) {
		return nil, reasonAt(n, pass.Unsupported, "bias other than one constant per channel")
	}
	return l, pass.Reason{}
}

// reasonAt is a reason about n.
func reasonAt(n *ir.Node, reason pass.Code, detail string) pass.Reason {
	return pass.Reason{Code: reason, Detail: detail}.At(n)
}

// weight is the constant weight of n, or the reason why it cannot be changed.
func (e *Editor) weight(n *ir.Node) (*pass.Operand, pass.Reason) {
	if !ir.DefaultDomain(n.Op.Domain) || layouts[n.Op.Type] == nil || len(n.Inputs()) < 2 {
		return nil, reasonAt(n, pass.NoLayer, "")
	}
	if reason := pass.FromCaller(n); !reason.None() {
		return nil, reason
	}
	o := pass.Trace(n.Input(1))
	switch {
	case o == nil:
		return nil, reasonAt(n, pass.NoLayer, "")
	case !o.Trouble.None():
		return nil, o.Trouble
	case o.Elem != o.Base.Const.DType || !isScalable(o.Elem):
		return nil, pass.Reason{Code: pass.DType, Detail: fmt.Sprintf("%s used as %s", o.Base.Const.DType, o.Elem)}
	case pass.StoredSmaller(o.Base.Const):
		return nil, pass.Reason{Code: pass.StoredSparse, Detail: o.Base.Name}
	case o.Base.Ambiguous:
		return nil, pass.Reason{Code: pass.Ambiguous, Detail: o.Base.Name}
	case n.Int("transA", 0) != 0:
		return nil, reasonAt(n, pass.Unsupported, "transA")
	// Another consumer would read scaled channels.
	case len(pass.LeafUses(o.Base)) != 1:
		return nil, pass.Reason{Code: pass.SeveralConsumers, Detail: o.Base.Name}
	// Add of older opsets has an axis attribute in place of broadcasting.
	case operator.Of(n).Product() && n.Graph().Opset("") < broadcastOpset:
		return nil, pass.Reason{Code: pass.Opset, Detail: fmt.Sprintf("%d below %d", n.Graph().Opset(""), broadcastOpset)}
	}
	if e.step.Select.Excludes(o.Base, []*ir.Node{n}) {
		return nil, pass.Reason{Code: pass.LayerSelected, Detail: o.Base.Name}
	}
	return o, pass.Reason{}
}

func isScalable(dt ir.DType) bool { return dt == ir.Float || dt == ir.Float16 || dt == ir.BFloat16 }

// biased is the MatMul whose bias is the Add n, or nil.
func (e *Editor) biased(n *ir.Node) *ir.Node {
	if !n.Op.Is("Add") {
		return nil
	}
	for i, v := range n.Inputs() {
		if v != nil && v.Producer() != nil && v.Producer().Op.Is("MatMul") && v.Graph() == n.Graph() && len(v.Uses()) == 1 &&
			pass.Trace(n.Input(1-i)) != nil {
			return v.Producer()
		}
	}
	return nil
}

// bias is the Add after a MatMul if it adds one value per channel.
func (e *Editor) bias(l *Layer) *ir.Node {
	y := l.Node.Outputs[0]
	if len(y.Uses()) != 1 || y.Uses()[0].Node == nil {
		return nil
	}
	add := y.Uses()[0].Node
	if e.biased(add) != l.Node || !e.fits(add.Input(1-y.Uses()[0].Index), l.Outputs, l.place) {
		return nil
	}
	return add
}

// Spatial reports whether l is a convolution: its channels are axis 1, and not the last one.
func (l *Layer) Spatial() bool { return operator.Of(l.Node).Spatial }

// Place is the channel axis of l's output.
func (l *Layer) Place() Place { return l.place }

// Last is the producer of l's output.
func (l *Layer) Last() *ir.Node {
	if l.add != nil {
		return l.add
	}
	return l.Node
}

// Output is l's output, bias included.
func (l *Layer) Output() *ir.Value { return l.Last().Outputs[0] }

// ScaleInputs multiplies the weight by f along its input channels.
func (l *Layer) ScaleInputs(f []float64) { l.e.scale(l.Weight, l.in, f) }

// ScaleOutputs multiplies weight and bias by f along the output channels.
func (l *Layer) ScaleOutputs(ctx context.Context, f []float64) error {
	if isOne(f) {
		return nil
	}
	l.e.scale(l.Weight, l.out, f)
	b, err := l.Bias(ctx)
	if err != nil || b == nil {
		return err
	}
	for i := range b {
		b[i] *= f[i]
	}
	l.setBias(b)
	return nil
}

// Response is the output per channel of weight w, with the layout of l's weight, for an input of
// constant value x per channel.
func (l *Layer) Response(ctx context.Context, w *ir.Tensor, x []float64) ([]float64, error) {
	y := make([]float64, l.Outputs)
	err := pass.Scan(ctx, l.e.step.Eval, w, func(w []float32, first int64) error {
		for i, v := range w {
			at := first + int64(i)
			y[l.out.channel(at)] += float64(v) * x[l.in.channel(at)]
		}
		return nil
	})
	if l.Node.Op.Is("Gemm") {
		for i := range y {
			y[i] *= float64(l.Node.Float("alpha", 1))
		}
	}
	return y, err
}
