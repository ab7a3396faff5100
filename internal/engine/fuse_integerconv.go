package engine

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An integerLayout replaces quantized convolutions by integer ones, whose images have adjacent channels (NHWC), and so
// do images between them: Transpose is needed at the first and the last of a chain only.
type integerLayout struct {
	f     *fusion
	last  map[int]int // by slot of an image: that of the image with adjacent channels
	steps []*step
}

var integerConvID = ir.OpID{Domain: "mcompress", Type: "IntegerConv"}

// The permutations between NCHW and NHWC.
var (
	toChannelsLast  = []int64{0, 2, 3, 1}
	toChannelsFirst = []int64{0, 3, 1, 2}
)

// convolveIntegers replaces quantized convolutions with quantized weights by IntegerConv. Sums of integers are exact
// and rounded once, so results may differ by one quantization level from those of the floating-point operators.
// Transposes without consumers are pruned later.
func convolveIntegers(p *program) {
	l := &integerLayout{f: newFusion(p), last: map[int]int{}}
	for _, s := range p.steps {
		// The model may have images with adjacent channels itself.
		if slices.Equal(l.f.permOf(s), toChannelsFirst) {
			l.last[s.out[0]] = s.in[0]
		}
		switch {
		case s.isOf(quantizedConvID) && l.convolve(s):
		case s.isOf(quantizedAddID) && l.add(s):
		case s.isOf(quantizedGlobalAveragePoolID) && s.Int("channels_last", 0) == 0 && l.has(s.in[0]):
			l.replaced(s, s.with(s.ID, slices.Concat([]int{l.last[s.in[0]]}, s.in[1:]), nil,
				intAttr("channels_last", 1)))
		case s.isOf(quantizedMaxPoolID):
			l.replaced(s, s.with(s.ID, []int{l.channelsLast(s, s.in[0])}, nil))
		default:
			l.steps = append(l.steps, s)
		}
	}
	p.steps = l.steps
}

// convolve appends the integer form of s, if there is one.
func (l *integerLayout) convolve(s *step) bool {
	w, _ := l.f.producer(s.in[1])
	// Another activation, or float weights, need floats: QuantizedConv has them for a band of rows at a time.
	if !l.f.multipliesIntegers(w, s.in[2]) || !l.bounds(s) {
		return false
	}
	in := []int{l.channelsLast(s, s.in[0]), w.in[0], s.in[2], s.in[3], s.in[4], w.in[1], l.f.zeroPointSlot(w),
		s.in[5], s.in[6]}
	l.replaced(s, s.with(integerConvID, in, nil))
	return true
}

// multipliesIntegers reports whether IntegerConv multiplies the weights that w dequantizes, and adds this bias.
func (f *fusion) multipliesIntegers(w *step, bias int) bool {
	return w.is("DequantizeLinear") && f.isPerChannel8(w) && (bias == absent || f.weight(bias) != nil)
}

// zeroPointSlot is the slot of the zero points of s, absent if they are 0.
func (f *fusion) zeroPointSlot(s *step) int {
	if len(s.in) > 2 && !f.isZeroConstant(s.in[2]) {
		return s.in[2]
	}
	return absent
}

// fuseQDQGemm fuses DequantizeLinear → Gemm → QuantizeLinear with quantized weights, one row for each output, into an
// IntegerConv, whose results may differ by one quantization level. i is the Gemm.
func fuseQDQGemm(f *fusion, i int) bool {
	g := f.p.steps[i]
	if !g.is("Gemm") || g.Int("transA", 0) != 0 || g.Int("transB", 0) != 1 || g.Float("alpha", 1) != 1 ||
		g.Float("beta", 1) != 1 {
		return false
	}
	from, iFrom := f.producer(g.in[0])
	w, _ := f.producer(g.in[1])
	to, iTo := f.onlyConsumer(g.out[0])
	if !from.is("DequantizeLinear") || !f.isPerTensor8(from) || !to.is("QuantizeLinear") || !f.isPerTensor8(to) ||
		to.in[0] != g.out[0] {
		return false
	}
	bias := absent
	if len(g.in) > 2 {
		bias = g.in[2]
	}
	if y, known := f.scalar(to.in[1]); !known || y <= 0 || !f.multipliesIntegers(w, bias) ||
		len(f.constant(w.in[0]).Shape) != 2 {
		return false
	}
	if b := f.weight(bias); bias != absent && (b.DType != ir.Float || len(b.Shape) != 1 ||
		b.Elems() != f.constant(w.in[0]).Shape[0]) {
		return false
	}
	s := fused(integerConvID, 1, g, []int{from.in[0], w.in[0], bias, from.in[1], from.in[2], w.in[1],
		f.zeroPointSlot(w), to.in[1], to.in[2]}, to.out)
	if s == nil {
		return false
	}
	gone := []int{i, iTo}
	// Another consumer reads the dequantized values.
	if f.consumedBy(g.in[0], i) {
		gone = append(gone, iFrom)
	}
	f.replace(iTo, s, gone...)
	return true
}

// bounds reports whether the activation of s only bounds quantized values.
func (l *integerLayout) bounds(s *step) bool {
	// A positive scale keeps the order, so that a bound of the values is one of the levels. Any other activation needs
	// the value itself.
	y, known := l.f.scalar(s.in[5])
	return known && y > 0 && slices.Contains([]string{"", "Relu", "Clip"}, s.Text("activation", ""))
}

// isPerChannel8 reports whether s dequantizes constant 8-bit weights to float32, per tensor or per output channel.
func (f *fusion) isPerChannel8(s *step) bool {
	w, scale := f.constant(s.in[0]), f.constant(s.in[1])
	if w == nil || scale == nil || scale.DType != ir.Float || w.DType != ir.Int8 && w.DType != ir.Uint8 ||
		s.Has("output_dtype") || s.Int("block_size", 0) != 0 {
		return false
	}
	if len(s.in) > 2 && s.in[2] != absent && f.array(s.in[2]) == nil {
		return false
	}
	axis := s.Int("axis", 1)
	return scale.Elems() == 1 || (axis == 0 || axis == -int64(len(w.Shape))) && len(scale.Shape) == 1 &&
		scale.Elems() == w.Shape[0]
}

// isZeroConstant reports whether slot o is absent, or a constant of zeros.
func (f *fusion) isZeroConstant(o int) bool {
	// A zero point that is not constant is excluded by isPerChannel8.
	return o == absent || !slices.ContainsFunc(f.array(o).Data, func(b byte) bool { return b != 0 })
}

// has reports whether image o is there with adjacent channels.
func (l *integerLayout) has(o int) bool {
	_, ok := l.last[o]
	return ok
}

// add appends s for images with adjacent channels, if both operands are available as such.
func (l *integerLayout) add(s *step) bool {
	a, hasA := l.last[s.in[0]]
	b, hasB := l.last[s.in[3]]
	// With one operand in the other layout, a Transpose would be added and none removed.
	if !hasA || !hasB {
		return false
	}
	in := slices.Clone(s.in)
	in[0], in[3] = a, b
	l.replaced(s, s.with(s.ID, in, nil))
	return true
}

// channelsLast is the slot of image o with adjacent channels, which a new Transpose before s computes if no other step
// does.
func (l *integerLayout) channelsLast(s *step, o int) int {
	if last, ok := l.last[o]; ok {
		return last
	}
	last := l.f.p.add(slot{name: l.f.p.slots[o].name})
	l.last[o] = last
	l.steps = append(l.steps, transposition(s, o, last, toChannelsLast))
	return last
}

// replaced appends made, whose output is that of s with adjacent channels, and the Transpose to the output of s.
func (l *integerLayout) replaced(s, made *step) {
	last := l.f.p.add(slot{name: l.f.p.slots[s.out[0]].name})
	l.last[s.out[0]] = last
	made.out, made.Consumed = []int{last}, []bool{true}
	l.steps = append(l.steps, made, transposition(s, last, s.out[0], toChannelsFirst))
}

func transposition(like *step, from, to int, perm []int64) *step {
	return fused(ir.OpID{Type: "Transpose"}, 13, like, []int{from}, []int{to}, ir.IntsAttr("perm", perm...))
}
