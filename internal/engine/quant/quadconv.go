package quant

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quadWeights are the weights of an IntegerConv for VPDPBUSD: int8, minus their zero points, with the parameters of the
// rounding. Images are multiplied where they are, or as bands with padding, without patches.
type quadWeights struct {
	convs  []*kernel.QuadConv // of each group, without Runs; nil for a depthwise convolution
	window *kernel.QuadWindow // of a depthwise convolution, without At
	xZero  int32
}

func (w *quadWeights) bytes() (n int64) {
	if w.window != nil {
		return int64(len(w.window.W) + 12*len(w.window.First))
	}
	for _, c := range w.convs {
		n += int64(len(c.W) + 12*len(c.First))
	}
	return n
}

// maxRepeat is the maximum number of adjacent positions of a depthwise convolution whose channels are whole blocks.
const maxRepeat = 4

// arrangeQuads is nil if the CPU does not multiply bytes, a parameter is not in memory, a weight minus its zero point
// is not int8, or scaled sums might be too large.
func arrangeQuads(n *op.Node, in []*ir.Array) (*integerWeights, error) {
	// The first sums and the rounding are computed once from all parameters.
	if kernel.GemmIntWidth() != 1 || n.IsFixed(icB) {
		return nil, nil
	}
	for _, i := range []int{icXScale, icXZero, icWScale, icYScale, icYZero} {
		if in[i] == nil {
			return nil, nil
		}
	}
	w, channels := in[icW], int(in[icW].Shape[0])
	scale, bias := make([]float32, channels), make([]float32, channels)
	xZero, q, err := requantization(n, in, scale, bias)
	if err != nil {
		return nil, err
	}
	zero, err := zeros(op.Opt(in, icWZero))
	if err != nil {
		return nil, err
	}
	// VPDPBUSD multiplies uint8 by int8: X is uint8 with its zero point in the first sums, W is int8 without one.
	values, fit := centered(w, zero)
	if !fit || !bounded(values, q) {
		return nil, nil
	}
	a := &quadArrangement{values: values, depth: int(w.Shape[1]), taps: int(w.Shape[2] * w.Shape[3]), q: q,
		lift: -xZero}
	// Images of int8 are flipped to uint8, which adds 128 to each element, and so to the zero point.
	if in[icXZero].DType == ir.Int8 {
		a.lift -= 128
	}
	made := &quadWeights{xZero: xZero}
	groups := max(int(n.Int("group", 1)), 1)
	if a.depth == 1 && channels == groups {
		made.window = a.window(channels)
	} else {
		run := a.depth * conv.TapsOfRun(n, w.Shape)
		for g := range groups {
			made.convs = append(made.convs, a.conv(g*channels/groups, channels/groups, run))
		}
	}
	return &integerWeights{quads: made}, nil
}

// centered are weights minus their zero points, if those are int8.
func centered(w *ir.Array, zero []int32) (values []byte, fit bool) {
	values = make([]byte, len(w.Data))
	of := len(w.Data) / int(w.Shape[0])
	for i, b := range w.Data {
		v := whole(b, w.DType == ir.Int8) - zeroAt(zero, i/of)
		if v != int32(int8(v)) {
			return nil, false
		}
		values[i] = byte(v)
	}
	return values, true
}

// bounded reports whether all scaled sums are below kernel.QuadLimit.
func bounded(values []byte, q kernel.Requantization) bool {
	of := len(values) / len(q.Scale)
	for c, scale := range q.Scale {
		largest := 0.0
		for _, v := range part(values, c, of) {
			// The largest image: every byte 255.
			largest += 255 * math.Abs(float64(int8(v)))
		}
		// nor NaN
		if below := largest*math.Abs(float64(scale))+math.Abs(float64(q.Bias[c])) < kernel.QuadLimit/2; !below {
			return false
		}
	}
	return true
}

// A quadArrangement arranges the weights of output channels, which are depth input channels of each tap.
type quadArrangement struct {
	values      []byte
	depth, taps int
	q           kernel.Requantization // of the channels
	lift        int32                 // minus the zero point of X as uint8
}

// conv arranges the weights of output channels from first on, whose windows are runs of run bytes.
func (a *quadArrangement) conv(first, channels, run int) *kernel.QuadConv {
	c := &kernel.QuadConv{Channels: channels}
	a.parameters(&c.First, &c.Q, roundUp(channels, kernel.QuadBlock))
	k := a.depth * a.taps
	pixels := make([]byte, channels*k)
	for o := range channels {
		values := part(a.values, first+o, k)
		kernel.TransposeBytes(part(pixels, o, k), values, a.depth, a.taps)
		a.set(&c.First, &c.Q, o, first+o, values)
	}
	quads := roundUp(run, kernel.GemmQuad)
	panel := k / run * quads * kernel.GemmPanel
	c.W = ir.AlignedBytes(int64(panel) * int64(roundUp(channels, kernel.GemmPanel)/kernel.GemmPanel))
	// Each run starts with a whole quad in both operands, so that no quad has bytes of two runs: in the image, they
	// are not adjacent.
	for r := range k / run {
		kernel.PackQuads(c.W[r*quads*kernel.GemmPanel:], panel, pixels[r*run:], 1, k, run, channels, 0)
	}
	return c
}

// window arranges the weights of a depthwise convolution, repeated for several positions if these are whole blocks.
func (a *quadArrangement) window(channels int) *kernel.QuadWindow {
	all, taps := channels, roundUp(a.taps, kernel.GemmQuad)
	// A block is 64 channels: of fewer, or of 96, adjacent positions together are whole blocks.
	for all%kernel.QuadBlock > 0 && all < maxRepeat*channels {
		all += channels
	}
	if all%kernel.QuadBlock > 0 {
		all = channels
	}
	w := &kernel.QuadWindow{Channels: channels, Positions: all / channels}
	a.parameters(&w.First, &w.Q, roundUp(all, kernel.QuadBlock))
	w.W = ir.AlignedBytes(int64(taps * len(w.First)))
	for c := range all {
		values := part(a.values, c%channels, a.taps)
		for t, v := range values {
			w.W[kernel.QuadWeight(c, t, taps)] = v
		}
		a.set(&w.First, &w.Q, kernel.QuadLane(c), c%channels, values)
	}
	return w
}

// parameters makes n of each parameter.
func (a *quadArrangement) parameters(first *[]int32, q *kernel.Requantization, n int) {
	*first, *q = make([]int32, n), a.q
	q.Scale, q.Bias = make([]float32, n), make([]float32, n)
}

// set copies the parameters of a channel with these weights.
func (a *quadArrangement) set(first *[]int32, q *kernel.Requantization, to, channel int, values []byte) {
	q.Scale[to], q.Bias[to] = a.q.Scale[channel], a.q.Bias[channel]
	for _, v := range values {
		// Σ (x - zero)·w = Σ x·w - zero·Σ w: the second sum is the start of the first one.
		(*first)[to] += a.lift * int32(int8(v))
	}
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }
