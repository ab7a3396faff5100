package metric

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// defaultIoU is the minimum intersection over union at which two boxes are the same detection.
const defaultIoU = 0.5

// newBoxAgreement is the mean over samples of the fraction of boxes of both models that have a counterpart: 2·matches
// divided by the number of all boxes (the F1 score of the detections with those of the reference as labels), 1 without
// any. Detections are as in newMeanAP.
func newBoxAgreement(o options) (Scorer, error) {
	iou, err := o.number("iou", 0.01, 1, defaultIoU)
	if err != nil {
		return nil, err
	}
	return &mean{ratios: func(b *Batch, out outputs) ([]ratio, error) {
		want, err := detectedBoxes(b, b.Want)
		if err != nil {
			return nil, err
		}
		got, err := detectedBoxes(b, out)
		if err != nil {
			return nil, err
		}
		all := make([]ratio, b.N)
		for i := range all {
			// Two models that both find nothing agree.
			all[i] = ratio{1, 1}
			if n := len(want[i]) + len(got[i]); n > 0 {
				all[i].value = 2 * float64(len(overlaps(want[i], got[i], iou))) / float64(n)
			}
		}
		return all, nil
	}}, nil
}

// overlaps are the intersections over union of the pairs of boxes of one class that overlap: each of want, in its
// order, with the free one of got of the highest overlap, if that is at least least.
func overlaps(want, got []box, least float64) []float64 {
	taken := make([]bool, len(got))
	var found []float64
	for _, w := range want {
		best, at := least, noClass
		for k, g := range got {
			if o := w.iou(g); !taken[k] && w.class == g.class && o >= best && (at == noClass || o > best) {
				best, at = o, k
			}
		}
		if at != noClass {
			taken[at] = true
			found = append(found, best)
		}
	}
	return found
}

// A BoxMatch is how many boxes of two lists have a counterpart in the other one.
type BoxMatch struct {
	IoU     float64 // minimum intersection over union
	Boxes   int     // of both lists
	Pairs   int
	Overlap float64 // sum of the intersections over union of the pairs
}

// Add adds the counts of another sample.
func (m *BoxMatch) Add(o BoxMatch) {
	m.IoU = o.IoU
	m.Boxes += o.Boxes
	m.Pairs += o.Pairs
	m.Overlap += o.Overlap
}

// MatchBoxes matches the rows of two outputs if they are boxes: floats of the same axes, but for the last but one,
// whose rows are corners or centers and sizes, in 4 numbers, which a score, or a score and a class follow; or after the
// number of the image (x1, y1, x2, y2, class, score).
func MatchBoxes(want, got *ir.Array) (BoxMatch, bool) {
	m := BoxMatch{IoU: defaultIoU}
	corners := centerExcess(want)+centerExcess(got) <= 0
	a, b := boxRows(want, corners), boxRows(got, corners)
	if a == nil || len(a) != len(b) {
		return m, false
	}
	for i := range a {
		m.Boxes += len(a[i]) + len(b[i])
		for _, o := range overlaps(a[i], b[i], m.IoU) {
			m.Pairs++
			m.Overlap += o
		}
	}
	return m, true
}

// boxWidth are the numbers of a row of boxes, and the position of the first coordinate; ok is false if a holds no
// boxes.
func boxWidth(a *ir.Array) (width, first int, ok bool) {
	rank := len(a.Shape)
	if !floating(a) || rank < 2 || rank > 3 || a.Shape[rank-1] < 4 || a.Shape[rank-1] > 7 {
		return 0, 0, false
	}
	if width = int(a.Shape[rank-1]); width == 7 {
		first = 1
	}
	return width, first, true
}

// centerExcess is by how many the rows that can only be centers and sizes outnumber the others. A few boxes of
// corners may have no area, or a negative one, and two outputs have one form.
func centerExcess(a *ir.Array) (n int) {
	width, first, ok := boxWidth(a)
	if !ok {
		return 0
	}
	for r := range slices.Chunk(values(a), width) {
		if n--; r[first+2] < r[first] || r[first+3] < r[first+1] {
			n += 2
		}
	}
	return n
}

// boxRows are the boxes of each index of the leading axes of a, corners or centers and sizes; nil if a holds no boxes.
// A tensor of no boxes has empty lists.
func boxRows(a *ir.Array, corners bool) [][]box {
	width, first, ok := boxWidth(a)
	if !ok {
		return nil
	}
	rank := len(a.Shape)
	n := int(a.Shape[rank-2])
	lists := 1
	if rank == 3 {
		lists = int(a.Shape[0])
	}
	out := make([][]box, lists)
	xs := slices.Collect(slices.Chunk(values(a), width))
	for i := range out {
		out[i] = make([]box, 0, n)
		for _, r := range xs[i*n:][:n] {
			b := box{x1: r[first], y1: r[first+1], x2: r[first+2], y2: r[first+3]}
			if !corners {
				b = box{x1: b.x1 - b.x2/2, y1: b.y1 - b.y2/2, x2: b.x1 + b.x2/2, y2: b.y1 + b.y2/2}
			}
			switch width {
			case 6:
				b.class = int64(r[5])
			case 7:
				// Boxes of different images never match: the image becomes a part of the class.
				b.class = int64(r[5])<<32 | int64(r[0])
			}
			out[i] = append(out[i], b)
		}
	}
	return out
}
