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

// mismatch is the reason why a does not fit n channels, or "".
func (a channelAffine) mismatch(n int64) string {
	if int64(len(a.scale)) != n {
		return fmt.Sprintf("it has %d channels, its layer %d", len(a.scale), n)
	}
	for i := range a.scale {
		if !finite(a.scale[i]) || !finite(a.shift[i]) {
			return "its factors are not finite"
		}
	}
	return ""
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// normalization is the scale and shift of a BatchNormalization, or the reason why they are not known.
func (f *folder) normalization(ctx context.Context, n *ir.Node) (a channelAffine, why string, err error) {
	if why := notInference(n); why != "" {
		return a, why, nil
	}
	var p [4][]float64 // scale, B, mean, variance
	for i := range p {
		o := pass.Trace(n.Input(i + 1))
		if o == nil || len(o.Shape) != 1 {
			return a, fmt.Sprintf("input %d of %s is no constant", i+1, n.Label()), nil
		}
		if p[i], err = f.PerChannel(ctx, n.Input(i+1), o.Shape[0], rescale.Place{Rank: 1}); err != nil {
			return a, "", err
		}
		if len(p[i]) != len(p[0]) || len(p[i]) == 0 {
			return a, "its parameters are of different lengths", nil
		}
	}
	eps := float64(n.Float("epsilon", 1e-5))
	a = channelAffine{make([]float64, len(p[0])), make([]float64, len(p[0]))}
	for i := range a.scale {
		a.scale[i] = p[0][i] / math.Sqrt(p[3][i]+eps)
		a.shift[i] = p[1][i] - p[2][i]*a.scale[i]
	}
	return a, "", nil
}

// notInference is the reason why a BatchNormalization of any opset does not apply its running means and variances by channel.
func notInference(n *ir.Node) string {
	if name := pass.FromCaller(n); name != "" {
		return "it gets its attribute " + name + " from the function's caller"
	}
	v := n.Graph().Opset("")
	training := v >= 14 && n.Int("training_mode", 0) != 0 || v < 7 && n.Int("is_test", 0) == 0
	for _, o := range n.Outputs[1:] {
		training = training || o != nil
	}
	switch {
	case training:
		return "it is in training mode"
	case len(n.Inputs()) != 5:
		return "it has not five inputs"
	case v < 9 && n.Int("spatial", 1) == 0:
		return "it normalizes elements and not channels"
	}
	return ""
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
	if channelOps[n.Op.Type] == nil || !ir.DefaultDomain(n.Op.Domain) || len(n.Inputs()) != 2 || n.Graph().Opset("") < weights.CastOpset {
		return nil
	}
	for i := range 2 {
		if i == 1 && !operator.Of(n).Commutative {
			continue // the constant is the dividend or minuend
		}
		l, why := f.layerBefore(n, n.Input(i))
		if why != "" {
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
