package engine

import (
	"fmt"
	"slices"
)

// fuseResidual fuses the addition of another value into a Conv, if that value is known to have the shape of the result:
// broadcasting is not possible there. i is the Conv.
func fuseResidual(f *fusion, i int) bool {
	conv := f.p.steps[i]
	if !conv.is("Conv") || !f.isFloat(conv) {
		return false
	}
	add, iAdd := f.onlyConsumer(conv.out[0])
	if !add.is("Add") {
		return false
	}
	z, _ := add.otherInput(conv.out[0])
	// The fused step is at the place of the addition, so the residual is computed by then, and has to have been before.
	if z == absent || f.producers[z] > iAdd || !f.sameImage(z, conv.out[0]) {
		return false
	}
	in := append(slices.Clone(conv.in), absent)[:3]
	s := conv.with(convID, append(in, z), add.out)
	if s == nil {
		return false
	}
	f.replace(iAdd, s, i, iAdd)
	return true
}

// An image describes how the shape of a value follows from another one's: sizes are unknown before a run, but equal
// chains of operators from the same value give equal sizes.
type image struct {
	channels int64  // 0 if no Conv determines it
	way      string // the slot that the chain starts from, and the operators that change heights and widths
}

func (f *fusion) sameImage(a, b int) bool {
	seen := map[int]image{}
	x, y := f.image(a, seen, imageReach), f.image(b, seen, imageReach)
	return x.channels > 0 && x == y
}

// imageReach is the number of operators that image follows: the time of a fusion, and its stack, do not grow with the
// graph.
const imageReach = 1000

// image follows o backwards through convolutions, pools and elementwise operators, reach of them at most.
func (f *fusion) image(o int, seen map[int]image, reach int) image {
	if im, ok := seen[o]; ok {
		return im
	}
	// Before the recursion, so that a value that is reached twice is not followed twice.
	im := image{way: fmt.Sprint(o)}
	seen[o] = im
	s, _ := f.producer(o)
	switch reach--; {
	case s == nil || reach < 0:
	case s.is("Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSwish", "Swish", "BatchNormalization", "QuantizeLinear",
		"DequantizeLinear"):
		im = f.image(s.in[0], seen, reach)
	case s.is("Add"):
		// Operands of different shapes broadcast to one that neither has.
		if a := f.image(s.in[0], seen, reach); a.channels > 0 && a == f.image(s.in[1], seen, reach) {
			im = a
		}
	case s.isOf(quantizedAddID): // of two equal images
		im = f.image(s.in[0], seen, reach)
	case s.is("MaxPool"):
		im = f.image(s.in[0], seen, reach)
		im.way += sizing(s, s.Ints("kernel_shape"))
	case s.is("Conv") || s.isOf(convID) || s.isOf(quantizedConvID):
		if w := f.weight(s.in[1]); w != nil && len(w.Shape) > 2 {
			im = f.image(s.in[0], seen, reach)
			im.channels = w.Shape[0]
			im.way += sizing(s, w.Shape[2:])
		}
	}
	seen[o] = im
	return im
}

// sizing is the text form of how a window changes the spatial sizes: empty if it keeps them.
func sizing(s *step, kernel []int64) string {
	// Padding depends on the size of the image: only equal attributes give equal sizes.
	if auto := s.Text("auto_pad", "NOTSET"); auto != "NOTSET" || s.Int("ceil_mode", 0) != 0 {
		return fmt.Sprint(" ", auto, s.Int("ceil_mode", 0), kernel, s.Ints("strides"), s.Ints("dilations"))
	}
	text, n := "", len(kernel)
	for i, k := range kernel {
		pad := at(s.Ints("pads"), i, 0) + at(s.Ints("pads"), i+n, 0)
		grows, stride := pad-(k-1)*at(s.Ints("dilations"), i, 1), at(s.Ints("strides"), i, 1)
		// A window that keeps sizes is left out, so that a residual branch of 3×3 kernels with padding has the sizes of
		// its input.
		if grows != 0 || stride != 1 {
			text += fmt.Sprintf(" axis %d by %d step %d", i, grows, stride)
		}
	}
	return text
}

func at(xs []int64, i int, def int64) int64 {
	if i < len(xs) {
		return xs[i]
	}
	return def
}
