package kernel

import "math"

// ErrorSums accumulates the sums for SQNR, cosine similarity and maximum error of an approximation: ref², (got-ref)²,
// got² and ref·got, and the largest |got-ref|. The zero value is ready to use.
type ErrorSums struct {
	Ref2, Err2, Got2, Dot float64
	MaxErr                float32
}

// Add accumulates one block. The order of additions is a function of block lengths alone: eight lanes by index modulo 8
// within the block, folded pairwise, then added to the totals. NaN makes a sum the canonical NaN on every CPU.
func (e *ErrorSums) Add(ref, got []float32) {
	checkLen("got", len(got), len(ref))
	var l errorLanes
	n := errorLanesBulk(&l, ref, got)
	l.addGo(ref[n:], got[n:])
	e.fold(&l)
}

func (e *ErrorSums) fold(l *errorLanes) {
	e.Ref2 = sum(e.Ref2, l.ref2)
	e.Err2 = sum(e.Err2, l.err2)
	e.Got2 = sum(e.Got2, l.got2)
	e.Dot = sum(e.Dot, l.dot)
	e.MaxErr = largest(e.MaxErr, l.maxErr)
}

// errorLanes are the running sums of a block; bulk_amd64.s depends on this layout.
type errorLanes struct {
	ref2, err2, got2, dot [8]float64
	maxErr                [8]uint32 // magnitude bits
}

// addGo requires ref to start at a multiple of 8 within its block. The conversions around products prevent a fused
// multiply-add.
func (l *errorLanes) addGo(ref, got []float32) {
	got = got[:len(ref)]
	for i, v := range ref {
		r, g, at := float64(v), float64(got[i]), i%8
		d := g - r
		l.ref2[at] += float64(r * r)
		l.err2[at] += float64(d * d)
		l.got2[at] += float64(g * g)
		l.dot[at] += float64(r * g)
		l.maxErr[at] = max(l.maxErr[at], math.Float32bits(got[i]-v)&magnitude)
	}
}

func sum(total float64, l [8]float64) float64 {
	total += ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
	if total != total {
		return math.NaN()
	}
	return total
}

func largest(top float32, l [8]uint32) float32 {
	b := math.Float32bits(top) & magnitude
	for _, v := range l {
		b = max(b, v)
	}
	if b > f32Inf {
		return float32(math.NaN())
	}
	return math.Float32frombits(b)
}
