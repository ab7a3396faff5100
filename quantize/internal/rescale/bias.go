package rescale

import (
	"context"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// fits reports whether v is a scalar constant, or one value per channel at p.
func (e *Editor) fits(v *ir.Value, n int64, p Place) bool {
	o := pass.Trace(v)
	if o == nil || !o.Trouble.None() || o.Transposed || !o.Elem.IsFloat() || len(o.Shape) > p.Rank {
		return false
	}
	at := len(o.Shape) - 1 - p.After
	for i, d := range o.Shape {
		if d != 1 && (i != at || d != n) {
			return false
		}
	}
	return true
}

// PerChannel reads v as one value for each of n channels at p; nil if v is not that.
func (e *Editor) PerChannel(ctx context.Context, v *ir.Value, n int64, p Place) ([]float64, error) {
	if !e.fits(v, n, p) {
		return nil, nil
	}
	x, err := e.numbers(ctx, v)
	if err != nil {
		return nil, err
	}
	for int64(len(x)) < n {
		x = append(x, x[0])
	}
	return x, nil
}

// numbers are the elements of the constant that v traces to.
func (e *Editor) numbers(ctx context.Context, v *ir.Value) ([]float64, error) {
	t := pass.Trace(v).Base.Const
	x := make([]float64, 0, t.Elems())
	err := pass.Scan(ctx, e.step.Eval, t, func(b []float32, _ int64) error {
		for _, f := range b {
			x = append(x, float64(f))
		}
		return nil
	})
	return x, err
}

// biasInput is the node and the input index of l's bias.
func (l *Layer) biasInput() (*ir.Node, int) {
	if l.add == nil {
		return l.Node, 2
	}
	return l.add, 1 - l.Node.Outputs[0].Uses()[0].Index
}

func (l *Layer) biasValue() *ir.Value {
	if l.Node.Op.Is("MatMul") && l.add == nil {
		return nil
	}
	n, i := l.biasInput()
	return n.Input(i)
}

// Bias is l's bias per channel, nil if it has none.
func (l *Layer) Bias(ctx context.Context) ([]float64, error) {
	v := l.biasValue()
	if v == nil {
		return nil, nil
	}
	b, err := l.e.PerChannel(ctx, v, l.Outputs, Place{Rank: l.place.Rank})
	if beta := float64(l.Node.Float("beta", 1)); l.Node.Op.Is("Gemm") {
		for i := range b {
			b[i] *= beta
		}
	}
	return b, err
}

// AddBias adds b, one value per channel, to l's output.
func (l *Layer) AddBias(ctx context.Context, b []float64) error {
	sum, err := l.Bias(ctx)
	if err != nil {
		return err
	}
	if sum == nil {
		sum = make([]float64, l.Outputs)
	}
	some := false
	for i, x := range b {
		sum[i] += x
		some = some || x != 0
	}
	if some {
		l.setBias(sum)
	}
	return nil
}

// setBias makes b the bias. The constant keeps its name unless it has other consumers.
func (l *Layer) setBias(b []float64) {
	t := vector(l.Weight.Const.DType, []int64{l.Outputs}, b)
	if l.Node.Op.Is("Gemm") {
		// b has the factor already.
		l.Node.RemoveAttr("beta")
	}
	old := l.biasValue()
	// In place where the constant is the layer's alone, so that it keeps its name and its row; else a constant of its
	// own, as other consumers keep the old one.
	if base := ownConstant(old); base != nil &&
		(base == old || base.Const.Elems() == t.Elems() && base.Const.DType == t.DType) {
		if base != old {
			t.Shape = base.Const.Shape // its views have sizes of their own
		}
		l.e.replace(base, t)
		return
	}
	if old == nil && l.Node.Op.Is("MatMul") {
		l.add = addAfter(l.Node)
	}
	n, i := l.biasInput()
	n.SetInput(i, l.Node.Graph().AddConst("b", t))
	if old != nil {
		old.Drop()
	}
}

// vector is x as a tensor of a float type.
func vector(dt ir.DType, shape []int64, x []float64) *ir.Tensor {
	t := &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}}
	single, half := make([]float32, len(x)), make([]uint16, len(x))
	for i, v := range x {
		single[i] = float32(v)
	}
	switch dt {
	case ir.Float16:
		kernel.F16FromF32(half, single)
		t.Source = ir.Mem(kernel.Bytes(half))
	case ir.BFloat16:
		kernel.BF16FromF32(half, single)
		t.Source = ir.Mem(kernel.Bytes(half))
	default:
		t.Source = ir.Mem(kernel.Bytes(single))
	}
	return t
}

// addAfter inserts an Add after n that produces n's former output; its second input is
// set later.
func addAfter(n *ir.Node) *ir.Node {
	y := n.Outputs[0]
	t := n.Graph().NewValue("t")
	t.Type = y.Type
	// The Add takes over the output: its name, and its consumers.
	n.SetOutputs(t)
	add := n.Graph().NewNode(ir.OpID{Type: "Add"}, []*ir.Value{t, nil})
	add.SetOutputs(y)
	if next := n.Next(); next != nil {
		n.Graph().InsertBefore(next, add)
	} else {
		n.Graph().Append(add)
	}
	return add
}
