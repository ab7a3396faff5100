package reduce

import (
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// The examples of the specification of NegativeLogLikelihoodLoss.
func TestNegativeLogLikelihood(t *testing.T) {
	x := shaped(optest.Array[float32](1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2), 2, 3, 2)
	target, weight := shaped(optest.Array[int64](2, 1, 0, 2), 2, 2), optest.Array[float32](0.2, 0.3, 0.1)
	reduction := func(r string) *ir.Attr { return ir.StringAttr("reduction", r) }
	check(t, "none", compute(t, "NegativeLogLikelihoodLoss", 13, arrays(x, target), reduction("none")), 0, -3, -2, 0,
		-2)
	check(t, "sum", compute(t, "NegativeLogLikelihoodLoss", 13, arrays(x, target, weight), reduction("sum")), 1e-6,
		-1.1)
	check(t, "mean", compute(t, "NegativeLogLikelihoodLoss", 13, arrays(x, target, weight)), 1e-6, -1.1/0.7)
	check(t, "ignored", compute(t, "NegativeLogLikelihoodLoss", 13, arrays(x, target), ir.IntAttr("ignore_index", 2)),
		1e-6, -1)
}

func TestSoftmaxCrossEntropyEqualsItsParts(t *testing.T) {
	x, labels := smooth(3, 4, 5), random(t, ir.Int32, 3, 5)
	for i, v := range ir.View[int32](labels) {
		ir.View[int32](labels)[i] = v % 4
	}
	logs := compute(t, "LogSoftmax", 13, arrays(x), ir.IntAttr("axis", 1))
	for _, attrs := range [][]*ir.Attr{nil, {ir.StringAttr("reduction", "none")}, {ir.IntAttr("ignore_index", 1)}} {
		out := results(t, optest.Case{Type: "SoftmaxCrossEntropyLoss", Version: 13, In: arrays(x, labels), Outputs: 2,
			Attrs: attrs})
		check(t, "loss", out[0], 1e-6, elements(t,
			compute(t, "NegativeLogLikelihoodLoss", 13, arrays(logs, labels), attrs...))...)
		check(t, "logarithms", out[1], 1e-6, elements(t, logs)...)
	}
}

func TestLabelsOutOfRange(t *testing.T) {
	c := optest.Case{Type: "SoftmaxCrossEntropyLoss", Version: 13, In: arrays(smooth(2, 3), optest.Array[int64](0, 3))}
	if _, err := optest.Run(Ops(), c); err == nil ||
		!strings.Contains(err.Error(), "label 1 is 3, want a class below 3") {
		t.Errorf("got %v", err)
	}
	c.Attrs = []*ir.Attr{ir.IntAttr("ignore_index", 3)}
	if _, err := optest.Run(Ops(), c); err != nil {
		t.Error(err)
	}
}

const preview = "ai.onnx.preview.training"

// One step each, by the pseudo code of the specification.
func TestOptimizers(t *testing.T) {
	rate, count := optest.Scalar[float32](0.1), optest.Scalar[int64](2)
	x, g, h, v := optest.Array[float32](1, -2), optest.Array[float32](0.5, 1), optest.Array[float32](4, 9),
		optest.Array[float32](1, 1)
	g1, g2 := 0.5+0.001, 1-0.002 // with norm_coefficient·x
	norm := ir.FloatAttr("norm_coefficient", 0.001)

	out := results(t, optest.Case{Domain: preview, Type: "Adagrad", Version: 1, Outputs: 2,
		In: arrays(rate, count, x, g, h), Attrs: []*ir.Attr{norm, ir.FloatAttr("decay_factor", 0.5)}})
	h1, h2 := 4+g1*g1, 9+g2*g2
	check(t, "Adagrad", out[0], 1e-6, 1-0.05*g1/(math.Sqrt(h1)+1e-6), -2-0.05*g2/(math.Sqrt(h2)+1e-6))
	check(t, "Adagrad, state", out[1], 1e-6, h1, h2)

	out = results(t, optest.Case{Domain: preview, Type: "Adam", Version: 1, Outputs: 3,
		In: arrays(rate, count, x, g, v, h), Attrs: []*ir.Attr{norm}})
	v1, v2, k1, k2 := 0.9+0.1*g1, 0.9+0.1*g2, 0.999*4+0.001*g1*g1, 0.999*9+0.001*g2*g2
	r := 0.1 * math.Sqrt(1-0.999*0.999) / (1 - 0.9*0.9)
	check(t, "Adam", out[0], 1e-5, 1-r*v1/(math.Sqrt(k1)+1e-6), -2-r*v2/(math.Sqrt(k2)+1e-6))
	check(t, "Adam, state", out[1], 1e-6, v1, v2)
	check(t, "Adam, squares", out[2], 1e-6, k1, k2)

	for mode, want := range map[string][]float64{
		"standard": {1 - 0.1*(0.9+0.5*g1), -2 - 0.1*(0.9+0.5*g2)},
		"nesterov": {1 - 0.1*(g1+0.9*(0.9+0.5*g1)), -2 - 0.1*(g2+0.9*(0.9+0.5*g2))},
	} {
		attrs := []*ir.Attr{norm, ir.FloatAttr("alpha", 0.9), ir.FloatAttr("beta", 0.5), ir.StringAttr("mode", mode)}
		out = results(t, optest.Case{Domain: preview, Type: "Momentum", Version: 1, Outputs: 2,
			In: arrays(rate, count, x, g, v), Attrs: attrs})
		check(t, mode, out[0], 1e-6, want...)
		check(t, mode+", state", out[1], 1e-6, 0.9+0.5*g1, 0.9+0.5*g2)
	}
}

func TestInvalidShapes(t *testing.T) {
	f := smooth(2, 3)
	for _, c := range []struct {
		domain, op string
		version    int64
		in         []*ir.Array
		attrs      []*ir.Attr
		want       string
	}{
		{"", "ReduceSum", 11, arrays(f), []*ir.Attr{ir.IntsAttr("axes", 2)}, "axis 2 is out of range"},
		{"", "ReduceSum", 13, arrays(f, optest.Array[int64](0, -2)), nil, "is repeated"},
		{"", "ReduceSum", 13, arrays(random(t, ir.Int8, 2)), nil, "not supported"},
		{"", "ReduceLogSum", 28, arrays(random(t, ir.Int32, 2)), nil, "not supported"},
		{"", "ArgMax", 13, arrays(ir.NewArray(ir.Float, 0, 2)), nil, "is empty"},
		{"", "Softmax", 13, arrays(optest.Scalar[float32](1)), nil, "axis -1 is out of range"},
		{"", "LpNormalization", 1, arrays(f), []*ir.Attr{ir.IntAttr("p", 3)}, "attribute p"},
		{"", "CumSum", 14, arrays(f, optest.Scalar[int64](2)), nil, "axis 2 is out of range"},
		{"", "TopK", 11, arrays(f, optest.Array[int64](4)), nil, "k is 4"},
		{"", "LayerNormalization", 17, arrays(f, smooth(4)), nil, "do not broadcast"},
		{"", "LayerNormalization", 17, arrays(f, smooth(4, 2, 3)), nil, "does not broadcast"},
		{"", "GroupNormalization", 21, arrays(f, smooth(3), smooth(3)), []*ir.Attr{ir.IntAttr("num_groups", 2)},
			"does not divide"},
		{"", "BatchNormalization", 15, arrays(f, smooth(2), smooth(3), smooth(3), smooth(3)), nil, "input scale"},
		{"", "NegativeLogLikelihoodLoss", 13, arrays(f, optest.Array[int64](0, 1, 2)), nil, "without axis 1"},
		{"", "NonZero", 13, arrays(ir.NewArray(ir.Int4, 2)), nil, "not supported"},
		{"", "Det", 11, arrays(f), nil, "square"},
		{preview, "Adam", 1, arrays(optest.Scalar[float32](1), optest.Scalar[int64](1), f), nil, "want a multiple"},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: c.domain, Type: c.op, Version: c.version, In: c.in,
			Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: error %v, want one with %q", c.op, c.in, err, c.want)
		}
	}
}
