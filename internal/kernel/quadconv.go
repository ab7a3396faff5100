package kernel

import "fmt"

// QuadBlock is the number of channels of which the parameters of a QuadConv and a QuadWindow are a multiple.
const QuadBlock = 64

// QuadLimit bounds the magnitude of scaled sums, without zero points, which are converted to int32.
const QuadLimit = 1 << 31

// A Run is contiguous bytes under a window: its offset, and the number of quads of weights, the last of which may be
// filled up with 0.
type Run struct{ At, Quads int64 }

// A QuadConv slides over images of uint8 whose channels are adjacent (NHWC) and is requantized: element c of position p
// of the result is that of First[c] + Σ W[k, c]·x[p*step+k], exact modulo 2^32, for the bytes k of all runs. First and
// the parameters of Q are whole blocks, of which the first Channels are used; sums times scales must be below
// QuadLimit. W is panels of 16 columns of int8, as of GemmInt, whose quads are those of one run after the other.
//
// It takes VPDPBUSD: without it GemmPairs is faster.
type QuadConv struct {
	Channels int
	Runs     []Run
	W        []byte
	First    []int32
	Q        Requantization
}

// quads is the number of quads of all runs.
func (q *QuadConv) quads() (n int) {
	for _, r := range q.Runs {
		n += int(r.Quads)
	}
	return n
}

// Slide computes the channels from lo to hi at adjacent positions, whose windows are step bytes of x apart. Rows of
// dst, which begin with channel 0, are to bytes apart. lo is a multiple of 16. It reads whole quads.
func (q *QuadConv) Slide(dst []byte, to int, x []byte, positions, step, lo, hi int) {
	if positions <= 0 || lo >= hi {
		return
	}
	if lo%GemmPanel != 0 || hi > q.Channels || to < hi || step < 0 || len(q.Runs) == 0 {
		panic(fmt.Sprintf("kernel: channels %d to %d of %d, positions %d and %d apart, %d runs", lo, hi, q.Channels,
			to, step, len(q.Runs)))
	}
	checkQuads(q.Channels, q.First, q.Q)
	within("w", len(q.W), (hi+GemmPanel-1)/GemmPanel*GemmPanel*GemmQuad*q.quads())
	within("dst", len(dst), (positions-1)*to+hi)
	for _, r := range q.Runs {
		if r.At < 0 || r.Quads <= 0 {
			panic(fmt.Sprintf("kernel: run of %d quads at %d", r.Quads, r.At))
		}
		within("x", len(x), (positions-1)*step+int(r.At+GemmQuad*r.Quads))
	}
	if !q.bulk(dst, to, x, positions, step, lo, hi) {
		q.plain(dst, to, x, positions, step, lo, hi)
	}
}

func (q *QuadConv) plain(dst []byte, to int, x []byte, positions, step, lo, hi int) {
	panel := GemmPanel * GemmQuad * q.quads()
	for p := range positions {
		for c := lo; c < hi; c++ {
			w, sum := q.W[c/GemmPanel*panel+c%GemmPanel*GemmQuad:], [1]int32{q.First[c]}
			at := 0
			for _, r := range q.Runs {
				for k, v := range x[p*step+int(r.At):][:GemmQuad*r.Quads] {
					sum[0] += int32(v) * int32(int8(w[(at+k)/GemmQuad*GemmQuad*GemmPanel+k%GemmQuad]))
				}
				at += int(GemmQuad * r.Quads)
			}
			requantizeGo(dst[p*to+c:], sum[:], q.Q.Part(c, c+1))
		}
	}
}

// checkQuads panics unless there are parameters of whole blocks of channels.
func checkQuads(channels int, first []int32, q Requantization) {
	q.Levels.check()
	// Kernels load whole vectors of parameters.
	within("first", len(first), (channels+QuadBlock-1)/QuadBlock*QuadBlock)
	checkLen("scale", len(q.Scale), len(first))
	checkLen("bias", len(q.Bias), len(first))
}

// A QuadWindow slides over images like a QuadConv, but each channel has its own weights: element c of position p is
// that of First[c] + Σ W[c, t]·x[p*step+At[t]+c]. At is whole quads of taps: the weights of those that fill up one are
// 0. Parameters are in the order of QuadLane, weights in that of QuadWeight, of the channels of Positions adjacent
// positions, and then what fills up a QuadBlock.
type QuadWindow struct {
	Channels  int
	Positions int
	At        []int64
	W         []byte
	First     []int32
	Q         Requantization
}

// QuadLane is the index of a parameter of a channel of a QuadWindow: four channels of each 16 are in a vector of 16.
func QuadLane(channel int) int {
	c := channel % QuadBlock
	return channel - c + c%16/4*16 + c/16*4 + c%4
}

// QuadWeight is the index of a weight of a QuadWindow.
func QuadWeight(channel, tap, taps int) int {
	lane := QuadLane(channel)
	block := lane/QuadBlock*(taps/GemmQuad) + tap/GemmQuad
	return (block*QuadBlock+lane%QuadBlock)*GemmQuad + tap%GemmQuad
}

// Slide computes adjacent positions, whose windows are step elements of x apart. It reads up to QuadBlock bytes after
// them.
func (q *QuadWindow) Slide(dst, x []byte, positions, step int) {
	if positions <= 0 || q.Channels == 0 {
		return
	}
	if len(q.At) == 0 || len(q.At)%GemmQuad != 0 || step < 0 {
		panic(fmt.Sprintf("kernel: %d taps, positions %d apart", len(q.At), step))
	}
	if q.Positions < 1 {
		panic(fmt.Sprintf("kernel: parameters of %d positions", q.Positions))
	}
	checkQuads(q.Positions*q.Channels, q.First, q.Q)
	within("w", len(q.W), len(q.First)*len(q.At))
	within("dst", len(dst), positions*q.Channels)
	for _, a := range q.At {
		if a < 0 {
			panic("kernel: negative offset")
		}
		within("x", len(x), (positions-1)*step+int(a)+q.Channels+QuadBlock)
	}
	if !q.bulk(dst, x, positions, step) {
		q.plain(dst, x, positions, step)
	}
}

func (q *QuadWindow) plain(dst, x []byte, positions, step int) {
	for p := range positions {
		for c := range q.Channels {
			lane := QuadLane(c)
			sum := [1]int32{q.First[lane]}
			for t, a := range q.At {
				sum[0] += int32(x[p*step+int(a)+c]) * int32(int8(q.W[QuadWeight(c, t, len(q.At))]))
			}
			requantizeGo(dst[p*q.Channels+c:], sum[:], q.Q.Part(lane, lane+1))
		}
	}
}

// FlipSigns converts int8 to uint8 by adding 128, and back.
func FlipSigns(dst, src []byte) {
	checkLen("dst", len(dst), len(src))
	flipRow(dst, src, true, 0)
}
