package kernel

import "fmt"

// DepthwiseGroup is the number of channels that are adjacent in the weights of a ByteWindow, and in all operands of DepthwiseFloat.
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

// A ByteWindow slides over images whose channels are adjacent (NHWC), each with its own weights, and is requantized: element c of position p
// of the result, of which Q has the scales, is that of First[c] + Σ W[c, t]·x[p*step+At[t]+c], exact modulo 2^32. Elements of x are int8 if
// Signed, else uint8. At has an even number of taps: the weights of one that fills up a pair are 0.
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
			panic(fmt.Sprintf("kernel: %d positions of %d channels from %d on are not within %d", positions, channels, a, len(x)))
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
				sum[0] += v * int32(b.W[DepthwiseWeight(c, t, len(b.At))])
			}
			requantizeGo(dst[p*len(b.First)+c:], sum[:], b.Q.Part(c, c+1))
		}
	}
}

// DepthwiseFloat sums a window over images of DepthwiseGroup adjacent channels: sum c of position p, y[p*16+c], becomes
// first[c] + Σ w[t*16+c]·x[p*step+at[t]+c], in the order of t, rounded after each step like WeightRows.
func DepthwiseFloat(y, x []float32, positions, step int, at []int64, w, first []float32) {
	if positions <= 0 {
		return
	}
	if step < 0 {
		panic(fmt.Sprintf("kernel: positions %d apart", step))
	}
	checkLen("first", len(first), DepthwiseGroup)
	within("y", len(y), positions*DepthwiseGroup)
	within("w", len(w), len(at)*DepthwiseGroup)
	for _, a := range at {
		if a < 0 || int(a)+(positions-1)*step+DepthwiseGroup > len(x) {
			panic(fmt.Sprintf("kernel: %d positions from %d on, %d apart, are not within %d", positions, a, step, len(x)))
		}
	}
	if !depthwiseFloatBulk(y, x, positions, step, at, w, first) {
		depthwiseFloatGo(y, x, positions, step, at, w, first)
	}
}

func depthwiseFloatGo(y, x []float32, positions, step int, at []int64, w, first []float32) {
	for i := range y[:positions*DepthwiseGroup] {
		p, c := i/DepthwiseGroup, i%DepthwiseGroup
		sum := first[c]
		for t, a := range at {
			sum += float32(w[t*DepthwiseGroup+c] * x[p*step+int(a)+c])
		}
		y[i] = sum
	}
}
