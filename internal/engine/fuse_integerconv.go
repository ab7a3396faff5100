package engine

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An integerLayout replaces quantized convolutions by integer ones, whose images have adjacent channels (NHWC), and so do images between
// them: Transpose is needed at the first and the last of a chain only.
type integerLayout struct {
	*fusion
	last  map[int]int // by slot of an image: that of the image with adjacent channels
	steps []*step
}

// The permutations between NCHW and NHWC.
var (
	toChannelsLast  = []int64{0, 2, 3, 1}
	toChannelsFirst = []int64{0, 3, 1, 2}
)

// convolveIntegers replaces quantized convolutions with quantized weights by IntegerConv. Sums of integers are exact and rounded once, so
// results may differ by one quantization level from those of the floating-point operators. Transposes without consumers are pruned later.
func convolveIntegers(p *program) {
	l := &integerLayout{fusion: newFusion(p), last: map[int]int{}}
	for _, s := range p.steps {
		if slices.Equal(l.permOf(s), toChannelsFirst) {
			l.last[s.out[0]] = s.in[0]
		}
		switch {
		case s.isOf(quantizedConvID) && l.convolve(s):
		case s.isOf(quantizedAddID) && l.add(s):
		default:
			l.steps = append(l.steps, s)
		}
	}
	p.steps = l.steps
}

// convolve appends the integer form of s, if there is one.
func (l *integerLayout) convolve(s *step) bool {
	w, _ := l.producer(s.in[1])
	if !w.is("DequantizeLinear") || !l.isPerChannel8(w) || !l.bounds(s) || s.in[2] != absent && l.weight(s.in[2]) == nil {
		return false
	}
	zero := absent
	if len(w.in) > 2 && !l.isZero(w.in[2]) {
		zero = w.in[2]
	}
	in := []int{l.channelsLast(s, s.in[0]), w.in[0], s.in[2], s.in[3], s.in[4], w.in[1], zero, s.in[5], s.in[6]}
	l.replaced(s, s.with(ir.OpID{Domain: "mcompress", Type: "IntegerConv"}, in, nil))
	return true
}

// bounds reports whether the activation of s only bounds quantized values.
func (l *integerLayout) bounds(s *step) bool {
	y, known := l.scalar(s.in[5])
	return known && y > 0 && slices.Contains([]string{"", "Relu", "Clip"}, s.Text("activation", ""))
}

// isPerChannel8 reports whether s dequantizes constant 8-bit weights to float32, per tensor or per output channel.
func (l *integerLayout) isPerChannel8(s *step) bool {
	w, scale := l.constant(s.in[0]), l.constant(s.in[1])
	if w == nil || scale == nil || scale.DType != ir.Float || w.DType != ir.Int8 && w.DType != ir.Uint8 || s.Has("output_dtype") || s.Int("block_size", 0) != 0 {
		return false
	}
	if len(s.in) > 2 && s.in[2] != absent && l.weight(s.in[2]) == nil {
		return false
	}
	axis := s.Int("axis", 1)
	return scale.Elems() == 1 || (axis == 0 || axis == -int64(len(w.Shape))) && len(scale.Shape) == 1 && scale.Elems() == w.Shape[0]
}

// isZero reports whether slot o is absent, or a constant of zeros.
func (l *integerLayout) isZero(o int) bool {
	return o == absent || !slices.ContainsFunc(l.array(o).Data, func(b byte) bool { return b != 0 })
}

// add appends s for images with adjacent channels, if both operands are available as such.
func (l *integerLayout) add(s *step) bool {
	a, hasA := l.last[s.in[0]]
	b, hasB := l.last[s.in[3]]
	if !hasA || !hasB {
		return false
	}
	in := slices.Clone(s.in)
	in[0], in[3] = a, b
	l.replaced(s, s.with(s.ID, in, nil))
	return true
}

// channelsLast is the slot of image o with adjacent channels, which a new Transpose before s computes if no other step does.
func (l *integerLayout) channelsLast(s *step, o int) int {
	if last, ok := l.last[o]; ok {
		return last
	}
	last := l.p.add(slot{name: l.p.slots[o].name})
	l.last[o] = last
	l.steps = append(l.steps, transposition(s, o, last, toChannelsLast))
	return last
}

// replaced appends made, whose output is that of s with adjacent channels, and the Transpose to the output of s.
func (l *integerLayout) replaced(s, made *step) {
	last := l.p.add(slot{name: l.p.slots[s.out[0]].name})
	l.last[s.out[0]] = last
	made.out, made.Consumed = []int{last}, []bool{true}
	l.steps = append(l.steps, made, transposition(s, last, s.out[0], toChannelsFirst))
}

func transposition(like *step, from, to int, perm []int64) *step {
	return fused(ir.OpID{Type: "Transpose"}, 13, like, []int{from}, []int{to}, ir.IntsAttr("perm", perm...))
}
