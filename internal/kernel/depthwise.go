package kernel

import "fmt"

// DepthwiseGroup is the number of channels that are adjacent in the weights of DepthwiseBytes, and in all operands of DepthwiseFloat.
const DepthwiseGroup = 16

// DepthwiseWeights is the number of weights of DepthwiseBytes.
func DepthwiseWeights(channels, taps int) int {
	groups := (channels + DepthwiseGroup - 1) / DepthwiseGroup
	return groups * DepthwiseGroup * 2 * ((taps + 1) / 2)
}

// DepthwiseWeight is the index of a weight of DepthwiseBytes: two taps of a channel are adjacent.
func DepthwiseWeight(channel, tap, taps int) int {
	pair := channel/DepthwiseGroup*((taps+1)/2) + tap/2
	return (pair*DepthwiseGroup+channel%DepthwiseGroup)*2 + tap%2
}

// DepthwiseBytes sums a window over images whose channels are adjacent (NHWC): sum c of position p, sums[p*len(first)+c], becomes
// first[c] + Σ w[c, t]·x[p*step+at[t]+c], exact modulo 2^32. Elements of x are int8 or uint8. at has an even number of taps: the weights of
// one that fills up a pair are 0.
func DepthwiseBytes(sums []int32, x []byte, positions, step int, at []int64, w []int16, first []int32, signed bool) {
	channels := len(first)
	if positions <= 0 || channels == 0 {
		return
	}
	if len(at)%2 != 0 || step < 0 {
		panic(fmt.Sprintf("kernel: %d taps, positions %d apart", len(at), step))
	}
	within("sums", len(sums), positions*channels)
	within("w", len(w), DepthwiseWeights(channels, len(at)))
	for _, a := range at {
		if a < 0 || int(a)+(positions-1)*step+channels > len(x) {
			panic(fmt.Sprintf("kernel: %d positions of %d channels from %d on are not within %d", positions, channels, a, len(x)))
		}
	}
	done := depthwiseBytesBulk(sums, x, positions, step, at, w, first, signed)
	depthwiseBytesGo(sums, x, positions, step, at, w, first, signed, done)
}

// depthwiseBytesGo computes the channels from lo on.
func depthwiseBytesGo(sums []int32, x []byte, positions, step int, at []int64, w []int16, first []int32, signed bool, lo int) {
	for p := range positions {
		for c := lo; c < len(first); c++ {
			sum := first[c]
			for t, a := range at {
				b := x[p*step+int(a)+c]
				v := int32(b)
				if signed {
					v = int32(int8(b))
				}
				sum += v * int32(w[DepthwiseWeight(c, t, len(at))])
			}
			sums[p*len(first)+c] = sum
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
