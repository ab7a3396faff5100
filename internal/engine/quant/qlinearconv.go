package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A convolution holds the indices of the image, the weights and their zero points among an operator's inputs.
type convolution struct{ x, w, xZero, wZero int }

var (
	convInteger = convolution{x: 0, w: 1, xZero: 2, wZero: 3}
	qLinearConv = convolution{x: 0, w: 3, xZero: 2, wZero: 5}
)

// integerConvolutions are the quantized convolutions.
func integerConvolutions() []op.Op {
	return []op.Op{
		{
			Type: "ConvInteger", Since: 10, Shape: convIntegerShape,
			Work: convInteger.work, Run: convolveIntegers,
		},
		{
			Type: "QLinearConv", Since: 10, Shape: qLinearConvShape,
			Work: qLinearConv.work, Run: runQLinearConv,
		},
	}
}

// geometry checks the operands.
func (v convolution) geometry(n *op.Node, in []*ir.Array) (*conv.Geometry, error) {
	x, err := op.Arg(in, v.x, "x")
	if err != nil {
		return nil, err
	}
	w, err := op.Arg(in, v.w, "w")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || w.Kind != ir.Dense || !isByte(x.DType) || !isByte(w.DType) {
		return nil, fmt.Errorf("inputs x and w are %s and %s, want int8 or uint8", x, w)
	}
	g, err := conv.GeometryOf(n, x.Shape, w.Shape)
	if err != nil {
		return nil, err
	}
	if err := checkZero("x", optional(in, v.xZero), x, 1, 1); err != nil {
		return nil, err
	}
	return g, checkZero("w", optional(in, v.wZero), w, int(w.Shape[0]), int(w.Shape[0]))
}

func (v convolution) work(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := v.geometry(n, in)
	if err != nil {
		return 0
	}
	if d := depthwiseOf(g); d != nil {
		return d.work(workers)
	}
	return g.TableSize() + gemm.IntWork(g.Product(), g.Products(), workers, false, true)
}

// A channelFinisher receives a part of an output channel of product i, starting at a position.
type channelFinisher func(i, channel, place int, sums []int32)

// run multiplies the weights with the patches. The sums are passed to finish.
func (v convolution) run(c *op.Call, g *conv.Geometry, finish channelFinisher) error {
	xZero, err := zeros(optional(c.In, v.xZero))
	if err != nil {
		return err
	}
	wZero, err := zeros(optional(c.In, v.wZero))
	if err != nil {
		return err
	}
	x, w := c.In[v.x], c.In[v.w]
	if d := depthwiseOf(g); d != nil {
		d.x, d.w, d.xZero, d.wZero = x, w, xZero, wZero
		d.run(c.Pool, c.Work, finish)
		return nil
	}
	// Padding is 0 in real numbers, which is the zero point.
	padding := byte(zeroOr0(xZero))
	patches, work := conv.PatchesOf(g, c.Work[:g.TableSize()]), c.Work[g.TableSize():]
	products := make([]gemm.IntProduct, g.Products())
	for i := range products {
		p := gemm.IntProduct{
			A: gemm.Rows(conv.Weights(g, w.Data, i), g.Depth()), ASigned: w.DType == ir.Int8,
			AZero:   partOf(wZero, i%g.Groups, g.OutC),
			BSigned: x.DType == ir.Int8, BZero: xZero,
		}
		if image := conv.Input(g, x.Data, i); g.Pointwise() {
			p.B = gemm.Rows(image, g.OutArea())
		} else {
			p.Panels = patches.OfBytes(image, padding)
		}
		p.Finish = gemm.EachRow(func(row, col int, sums []int32) { finish(i, i%g.Groups*g.OutC+row, col, sums) })
		products[i] = p
	}
	gemm.Int(c.Pool, g.Product(), work, products...)
	return nil
}

// zeroOr0 is a zero point of one element, 0 if absent.
func zeroOr0(zero []int32) int32 {
	if zero == nil {
		return 0
	}
	return zero[0]
}

func convIntegerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	g, err := convInteger.geometry(n, in)
	if err != nil {
		return nil, err
	}
	s := ir.Spec{DType: ir.Int32, Shape: g.OutShape()}
	return []ir.Spec{s}, s.Valid()
}

func convolveIntegers(c *op.Call) error {
	g, err := convInteger.geometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	to := ir.View[int32](c.Out[0])
	return convInteger.run(c, g, func(i, channel, place int, sums []int32) {
		copy(part(conv.Output(g, to, i), channel%g.OutC, g.OutArea())[place:], sums)
	})
}

// qLinearConvShape is QLinearConv's: inputs x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point,
// B.
func qLinearConvShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	g, err := qLinearConv.geometry(n, in)
	if err != nil {
		return nil, err
	}
	if err := requireInputs(in, input{1, "x_scale"}, input{4, "w_scale"}, input{6, "y_scale"},
		input{7, "y_zero_point"}); err != nil {
		return nil, err
	}
	channels := in[3].Shape[0]
	for _, i := range []input{{1, "x_scale"}, {4, "w_scale"}, {6, "y_scale"}} {
		s := in[i.at]
		if s.Kind != ir.Dense || !isScale(s.DType) || s.Elems() != 1 && (i.at != 4 || s.Elems() != channels) {
			return nil, fmt.Errorf("input %s is %s, want one float, or one for each of %d channels for w", i.name, s,
				channels)
		}
	}
	zero := in[7]
	if !isByte(zero.DType) || zero.Elems() != 1 {
		return nil, fmt.Errorf("input y_zero_point is %s, want one int8 or uint8", zero)
	}
	if b := op.Opt(in, 8); b != nil && (b.DType != ir.Int32 || b.Elems() != channels) {
		return nil, fmt.Errorf("input B is %s, want one int32 for each of %d channels", b, channels)
	}
	s := ir.Spec{DType: zero.DType, Shape: g.OutShape()}
	return []ir.Spec{s}, s.Valid()
}

func runQLinearConv(c *op.Call) error {
	g, err := qLinearConv.geometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	scale, err := channelScales(c.In[1], c.In[4], c.In[6])
	if err != nil {
		return err
	}
	zero, err := integers(c.In[7])
	if err != nil {
		return err
	}
	var bias []int32
	if b := c.Opt(8); b != nil {
		bias = ir.View[int32](b)
	}
	y, levels := c.Out[0].Data, rangeOfType(c.Out[0].DType)
	return qLinearConv.run(c, g, func(i, channel, place int, sums []int32) {
		if bias != nil {
			for j := range sums {
				sums[j] += bias[channel]
			}
		}
		row := conv.Output(g, y, i)[channel%g.OutC*g.OutArea()+place:][:len(sums)]
		requantizeRow(row, sums, scale[channel%len(scale)], zero[0], levels)
	})
}

// channelScales are x·w/y, rounded after each step.
func channelScales(x, w, y *ir.Array) ([]float32, error) {
	var all [3][]float32
	for i, a := range []*ir.Array{x, w, y} {
		var err error
		if all[i], err = floats(a); err != nil {
			return nil, err
		}
	}
	out := make([]float32, len(all[1]))
	for i, s := range all[1] {
		out[i] = all[0][0] * s / all[2][0]
	}
	return out, nil
}
