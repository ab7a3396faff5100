package kernel

import "fmt"

// DepthwiseGroup is the number of channels that are adjacent in the weights of a ByteWindow, and of which those of a
// FloatWindow are a multiple.
const DepthwiseGroup = 16

// DepthwiseWeights is the number of weights of a ByteWindow.
func DepthwiseWeights(channels, taps int) int {
	groups := (channels + DepthwiseGroup - 1) / DepthwiseGroup
	return groups * DepthwiseGroup * 2 * ((taps + 1) / 2)
}

// DepthwiseWeight is the index of a weight of a ByteWindow: two taps of a channel are adjacent.
func DepthwiseWeight(channel, tap, taps int) int {
	pair := channel/DepthwiseGroup*((taps+1)/2) + tap/2
	return (pair*DepthwiseGroup+channel%DepthwiseGroup)*2 + tap%2
}

// A ByteWindow slides over images whose channels are adjacent (NHWC), each with its own weights, and is requantized:
// element c of position p of the result, of which Q has the scales, is that of First[c] + Σ W[c, t]·x[p*step+At[t]+c],
// exact modulo 2^32. Elements of x are int8 if Signed, else uint8. At has an even number of taps: the weights of one
// that fills up a pair are 0.
type ByteWindow struct {
	At     []int64
	W      []int16
	First  []int32
	Signed bool
	Q      Requantization
}

// Slide computes adjacent positions, whose windows are step elements of x apart.
func (b *ByteWindow) Slide(dst, x []byte, positions, step int) {
	channels := len(b.First)
	if positions <= 0 || channels == 0 {
		return
	}
	if len(b.At)%2 != 0 || step < 0 {
		panic(fmt.Sprintf("kernel: %d taps, positions %d apart", len(b.At), step))
	}
	checkLen("scale", len(b.Q.Scale), channels)
	b.Q.check(dst, channels, positions*channels)
	within("w", len(b.W), DepthwiseWeights(channels, len(b.At)))
	for _, a := range b.At {
		if a < 0 || int(a)+(positions-1)*step+channels > len(x) {
			panic(fmt.Sprintf("kernel: %d positions of %d channels from %d on are not within %d", positions, channels,
				a, len(x)))
		}
	}
	b.plain(dst, x, positions, step, b.bulk(dst, x, positions, step))
}

// plain computes the channels from lo on.
func (b *ByteWindow) plain(dst, x []byte, positions, step, lo int) {
	for p := range positions {
		for c := lo; c < len(b.First); c++ {
			sum := [1]int32{b.First[c]}
			for t, a := range b.At {
				v := int32(x[p*step+int(a)+c])
				if b.Signed {
					v = int32(int8(v))
				}
				// Two taps of a channel are adjacent, and their products summed by VPMADDWD, exactly; zero points are
				// in First and in the weights.
				sum[0] += v * int32(b.W[DepthwiseWeight(c, t, len(b.At))])
			}
			requantizeGo(dst[p*len(b.First)+c:], sum[:], b.Q.Part(c, c+1))
		}
	}
}

// A Tap is an element of the kernel of a FloatWindow: the offsets of its input and of its weights.
type Tap struct{ X, W int }

// A FloatWindow slides over images whose channels are adjacent (NHWC), each with its own weights: element c of position
// p of the result becomes First[c] + Σ W[t.W+c]·x[p*from+t.X+c], a chain of fused multiply-adds in the order of Taps,
// bounded like Clip does by Lo and Hi. Channels are a multiple of DepthwiseGroup.
type FloatWindow struct {
	Taps     []Tap
	W, First []float32
	Lo, Hi   float32
}

// Slide computes positions that are to elements of y and from elements of x apart.
func (f *FloatWindow) Slide(y []float32, to int, x []float32, from, positions int) {
	channels := len(f.First)
	if positions <= 0 || channels == 0 {
		return
	}
	if to < 0 || from < 0 || channels%DepthwiseGroup != 0 {
		panic(fmt.Sprintf("kernel: %d channels, positions %d and %d apart", channels, to, from))
	}
	within("y", len(y), (positions-1)*to+channels)
	for _, t := range f.Taps {
		if t.X < 0 || t.X+(positions-1)*from+channels > len(x) || t.W < 0 || t.W+channels > len(f.W) {
			panic(fmt.Sprintf("kernel: tap %v of %d positions %d apart is not within %d inputs, %d weights", t,
				positions, from, len(x), len(f.W)))
		}
	}
	if !f.bulk(y, to, x, from, positions) {
		f.plain(y, to, x, from, positions)
	}
}

func (f *FloatWindow) plain(y []float32, to int, x []float32, from, positions int) {
	for p := range positions {
		for c, sum := range f.First {
			for _, t := range f.Taps {
				// Emulated, so that the twin equals the assembly. Fused chains with bounds in the kernel, AVX-512: 384
				// channels of 14×14 35 → 26 µs, 576 60 → 41.
				sum = fma32(f.W[t.W+c], x[p*from+t.X+c], sum)
			}
			y[p*to+c] = clip(sum, f.Lo, f.Hi)
		}
	}
}
