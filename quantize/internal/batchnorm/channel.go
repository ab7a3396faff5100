package batchnorm

import (
	"context"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A channelAffine is x·scale + shift by channel.
type channelAffine struct{ scale, shift []float64 }

// mismatch is the reason why a, of node n, does not fit the given number of channels of l.
func (a channelAffine) mismatch(n *ir.Node, l *rescale.Layer, channels int64) pass.Reason {
	if int64(len(a.scale)) != channels {
		return reasonAt(l.Node, pass.FoldChannels, fmt.Sprintf("%d and %d", len(a.scale), channels))
	}
	for i := range a.scale {
		if !finite(a.scale[i]) || !finite(a.shift[i]) {
			return reasonAt(n, pass.FoldParameters, "infinite factors")
		}
	}
	return pass.Reason{}
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// normalization is the scale and shift of a BatchNormalization, or the reason why they are not known.
func (f *folder) normalization(ctx context.Context, n *ir.Node) (a channelAffine, none pass.Reason, err error) {
	// In training the factors depend on the batch.
	if reason := notInference(n); !reason.None() {
		return a, reason, nil
	}
	var p [4][]float64 // scale, B, mean, variance
	for i := range p {
		o := pass.Trace(n.Input(i + 1))
		if o == nil || len(o.Shape) != 1 {
			return a, reasonAt(n, pass.FoldParameters, fmt.Sprintf("input %d not constant", i+1)), nil
		}
		if p[i], err = f.PerChannel(ctx, n.Input(i+1), o.Shape[0], rescale.Place{Rank: 1}); err != nil {
			return a, none, err
		}
		if len(p[i]) != len(p[0]) || len(p[i]) == 0 {
			return a, reasonAt(n, pass.FoldParameters, "different lengths"), nil
		}
	}
	// (x - mean)/√(variance + ε)·scale + B as one factor and one shift, in float64, of which the weight is rounded
	// once.
	eps := float64(n.Float("epsilon", 1e-5))
	a = channelAffine{make([]float64, len(p[0])), make([]float64, len(p[0]))}
	for i := range a.scale {
		a.scale[i] = p[0][i] / math.Sqrt(p[3][i]+eps)
		a.shift[i] = p[1][i] - p[2][i]*a.scale[i]
	}
	return a, none, nil
}

// notInference is the reason why a BatchNormalization of any opset does not apply its running means and variances by
// channel.
func notInference(n *ir.Node) pass.Reason {
	if reason := pass.FromCaller(n); !reason.None() {
		return reason
	}
	v := n.Graph().Opset("")
	training := v >= 14 && n.Int("training_mode", 0) != 0 || v < 7 && n.Int("is_test", 0) == 0
	for _, o := range n.Outputs[1:] {
		training = training || o != nil
	}
	switch {
	case training:
		return reasonAt(n, pass.FoldTraining, "")
	case len(n.Inputs()) != 5:
		return reasonAt(n, pass.FoldParameters, fmt.Sprintf("%d inputs", len(n.Inputs())))
	case v < 9 && n.Int("spatial", 1) == 0:
		return reasonAt(n, pass.FoldParameters, "spatial 0")
	}
	return pass.Reason{}
}

// channelOps are scale and shift of operators with a constant k.
var channelOps = map[string]func(k float64) (scale, shift float64){
	"Mul": func(k float64) (float64, float64) { return k, 0 },
	"Div": func(k float64) (float64, float64) { return 1 / k, 0 },
	"Add": func(k float64) (float64, float64) { return 1, k },
	"Sub": func(k float64) (float64, float64) { return 1, -k },
}

// channelArithmetic folds Mul, Add and the like by one constant per channel into the previous layer.
func (f *folder) channelArithmetic(ctx context.Context, n *ir.Node) error {
	if channelOps[n.Op.Type] == nil || !ir.DefaultDomain(n.Op.Domain) || len(n.Inputs()) != 2 ||
		n.Graph().Opset("") < weights.CastOpset {
		return nil
	}
	for i := range 2 {
		if i == 1 && !operator.Of(n).Commutative {
			continue // the constant is the dividend or minuend
		}
		l, reason := f.layerBefore(n, n.Input(i))
		if !reason.None() {
			continue
		}
		k, err := f.PerChannel(ctx, n.Input(1-i), l.Outputs, l.Place())
		if err != nil || k == nil {
			return err
		}
		a := channelAffine{make([]float64, len(k)), make([]float64, len(k))}
		for j, x := range k {
			a.scale[j], a.shift[j] = channelOps[n.Op.Type](x)
		}
		_, err = f.foldIntoPrevious(ctx, n, l, a)
		return err
	}
	return nil
}
