package metric

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

const (
	mostDetections = 100 // of a class on a sample, those with the highest scores
	recallPoints   = 101 // at which precision is interpolated, 0.01 apart
)

// newMeanAP is the mean over classes and IoU thresholds of the average precision of boxes: the mean of the interpolated
// precision at 101 recalls, with at most 100 detections of a class on a sample, as COCO's AP@[.50:.05:.95] of boxes of
// all areas (Lin et al., ECCV 2014, and pycocotools). Detections are rows x1, y1, x2, y2, score, class of one output,
// or outputs of boxes, scores and classes; labels are rows x1, y1, x2, y2, class, or the detections of the reference
// model where the samples have none or labels=source asks for it, which is another quantity with a name of its own.
func newMeanAP(o options) (Scorer, error) {
	iou, err := o.number("iou", 0.01, 1, 0)
	if err != nil {
		return nil, err
	}
	if l := o["labels"]; l != "" && l != "source" {
		return nil, fmt.Errorf("labels=%s: must be source, or absent for the labels of the data", l)
	}
	thresholds := []float64{iou}
	if iou == 0 {
		thresholds = nil
		for k := range 10 {
			thresholds = append(thresholds, 0.5+0.45/9*float64(k))
		}
	}
	m := &meanAPs{relative: o["labels"] == "source"}
	m.set = &set[detections]{
		read: func(b *Batch, side int) (func(*detections, int), error) {
			labels, err := m.labels(b)
			if err != nil {
				return nil, err
			}
			found, err := detectedBoxes(b, b.sides()[side])
			if err != nil {
				return nil, err
			}
			return func(d *detections, i int) {
				if *d == nil {
					*d = detections{}
				}
				d.addSample(found[i], labels[i], thresholds, b.First+i)
			}, nil
		},
		value: func(parts []*detections) float64 { return meanAP(parts, len(thresholds)) },
	}
	return m, nil
}

// meanAPs are those of two models, by the labels of the data, or of the second model by the detections of the first.
type meanAPs struct {
	*set[detections]
	relative bool
}

// labels are the boxes to find in each sample of b.
func (m *meanAPs) labels(b *Batch) ([][]box, error) {
	if b.Labels != nil && !m.relative {
		return labelledBoxes(b)
	}
	// The name of the score then says what the labels were.
	if m.relative = true; b.Want == nil {
		return nil, inapplicable("it compares two models")
	}
	all, err := detectedBoxes(b, b.Want)
	for i := range all {
		// As labels the reference's detections are bounded as the model's are, or no model could find them all.
		all[i] = mostLikely(all[i])
	}
	return all, err
}

// Score implements Scorer.
func (m *meanAPs) Score(ctx context.Context) (Score, error) {
	s, err := m.set.Score(ctx)
	if m.relative {
		s.Name = "map:labels=source"
	}
	return s, err
}

// mostLikely are the detections of each class that count.
func mostLikely(found []box) []box {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b box) int { return cmp.Compare(b.score, a.score) })
	n := map[int64]int{}
	return slices.DeleteFunc(found, func(b box) bool {
		n[b.class]++
		return n[b.class] > mostDetections
	})
}

// A box is a detection, or a label with score 0.
type box struct {
	x1, y1, x2, y2, score float64
	class                 int64
}

// iou is the intersection over union of two boxes, 1 of equal ones, also of no area.
func (a box) iou(b box) float64 {
	if a.x1 == b.x1 && a.y1 == b.y1 && a.x2 == b.x2 && a.y2 == b.y2 {
		return 1
	}
	w, h := min(a.x2, b.x2)-max(a.x1, b.x1), min(a.y2, b.y2)-max(a.y1, b.y1)
	// Written so that NaNs overlap with nothing.
	if !(w > 0 && h > 0) {
		return 0
	}
	both := w * h
	return both / ((a.x2-a.x1)*(a.y2-a.y1) + (b.x2-b.x1)*(b.y2-b.y1) - both)
}

// labelledBoxes are the boxes of each sample. Rows whose class is negative or NaN fill up shorter lists.
func labelledBoxes(b *Batch) ([][]box, error) {
	if shape, ok := sample(b.Labels, b.N); !readable(b.Labels) || !ok || len(shape) != 2 || shape[1] != 5 {
		return nil, inapplicable("labels are %s; boxes are samples by boxes by 5 numbers: x1, y1, x2, y2, class", b.Labels)
	}
	out := make([][]box, b.N)
	for i, row := range rows(b.Labels, b.N) {
		for r := range slices.Chunk(row, 5) {
			// NaN is not: it fills up lists as well.
			if r[4] >= 0 {
				out[i] = append(out[i], box{r[0], r[1], r[2], r[3], 0, int64(r[4])})
			}
		}
	}
	return out, nil
}

// detectedBoxes are those of each sample. Detections whose score is not positive, or whose class is negative, fill up
// shorter lists.
func detectedBoxes(b *Batch, out outputs) ([][]box, error) {
	all, ok := joinedBoxes(b, out)
	if !ok {
		all, ok = separateBoxes(b, out)
	}
	if !ok {
		return nil, inapplicable("no output has detections: rows x1, y1, x2, y2, score, class in one output, or outputs " +
			"of boxes, scores and classes; use --evaluator for models without non-maximum suppression")
	}
	for i := range all {
		all[i] = slices.DeleteFunc(all[i], func(d box) bool { return !(d.score > 0) || d.class < 0 })
	}
	return all, nil
}

// joinedBoxes are the rows of one output.
func joinedBoxes(b *Batch, out outputs) ([][]box, bool) {
	for _, name := range b.Outputs {
		a := out[name]
		if !floating(a) {
			continue
		}
		if shape, ok := sample(a, b.N); ok && len(shape) == 2 && shape[1] == 6 {
			all := make([][]box, b.N)
			for i, row := range rows(a, b.N) {
				for r := range slices.Chunk(row, 6) {
					all[i] = append(all[i], box{r[0], r[1], r[2], r[3], r[4], int64(r[5])})
				}
			}
			return all, true
		}
	}
	return nil, false
}

// separateBoxes are of outputs of boxes, scores and classes. Classes have a name with class or label, or are the first
// integers: a number of boxes, or the images of a batch, may follow, and one box has as many of these.
func separateBoxes(b *Batch, out outputs) ([][]box, bool) {
	var boxes, scores, classes *ir.Array
	count := int64(-1)
	for _, name := range b.Outputs {
		if a := out[name]; floating(a) && len(a.Shape) > 1 && a.Shape[len(a.Shape)-1] == 4 {
			boxes, count = a, a.Elems()/4
			break
		}
	}
	named := false
	for _, name := range b.Outputs {
		a := out[name]
		if !readable(a) || a == boxes || a.Elems() != count {
			continue
		}
		low := strings.ToLower(name)
		switch says := strings.Contains(low, "class") || strings.Contains(low, "label"); {
		case says && !named:
			classes, named = a, true
		case says:
		case !a.DType.IsFloat():
			if classes == nil && !numberOf.MatchString(low) {
				classes = a
			}
		case scores == nil && !numberOf.MatchString(low):
			scores = a
		}
	}
	if boxes == nil || scores == nil || classes == nil || count%int64(b.N) != 0 {
		return nil, false
	}
	x, s, c := values(boxes), values(scores), values(classes)
	all := make([][]box, b.N)
	for k := range s {
		// Samples have equal numbers of boxes here.
		i := k * b.N / len(s)
		all[i] = append(all[i], box{x[4*k], x[4*k+1], x[4*k+2], x[4*k+3], s[k], int64(c[k])})
	}
	return all, true
}

// numberOf matches the names of outputs of the number of detections.
var numberOf = regexp.MustCompile(`(^|[^a-z])(num|number|count|n)([^a-z]|$)|valid`)

// detections are those of a class with the labels that they match.
type detections map[int64]*classDetections

type classDetections struct {
	labels int
	found  []detection
}

// A detection has the score, the sample, and a bit for each threshold at which it matches a label.
type detection struct {
	score   float64
	sample  int
	matched uint16
}

// addSample matches detections of a sample, those of higher scores first, each with the free label of the highest
// overlap.
func (d detections) addSample(found, labels []box, thresholds []float64, sample int) {
	byClass := map[int64][2][]box{}
	for k, list := range [2][]box{found, labels} {
		for _, x := range list {
			of := byClass[x.class]
			of[k] = append(of[k], x)
			byClass[x.class] = of
		}
	}
	for class, of := range byClass {
		c := d[class]
		if c == nil {
			c = &classDetections{}
			d[class] = c
		}
		c.labels += len(of[1])
		c.found = append(c.found, matchDetections(of[0], of[1], thresholds, sample)...)
	}
}

func matchDetections(found, labels []box, thresholds []float64, sample int) []detection {
	slices.SortStableFunc(found, func(a, b box) int { return cmp.Compare(b.score, a.score) })
	found = found[:min(len(found), mostDetections)]
	out := make([]detection, len(found))
	for i, f := range found {
		out[i] = detection{score: f.score, sample: sample}
	}
	for t, threshold := range thresholds {
		taken := make([]bool, len(labels))
		for i, f := range found {
			// As pycocotools does: at a threshold of 1 rounding must not lose equal boxes, and of equal overlaps the
			// last wins.
			best, at := min(threshold, 1-1e-10), noClass
			for k, l := range labels {
				if o := f.iou(l); !taken[k] && o >= best {
					best, at = o, k
				}
			}
			if at != noClass {
				taken[at] = true
				out[i].matched |= 1 << t
			}
		}
	}
	return out
}

// meanAP is the mean over thresholds and over the classes that have labels, NaN without any.
func meanAP(parts []*detections, thresholds int) float64 {
	all := detections{}
	for _, part := range parts {
		for class, c := range *part {
			sum := all[class]
			if sum == nil {
				sum = &classDetections{}
				all[class] = sum
			}
			sum.labels += c.labels
			sum.found = append(sum.found, c.found...)
		}
	}
	sum, n := 0.0, 0
	for _, class := range slices.Sorted(maps.Keys(all)) {
		c := all[class]
		if c.labels == 0 {
			continue
		}
		slices.SortStableFunc(c.found, func(a, b detection) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.sample, b.sample))
		})
		for t := range thresholds {
			sum += c.averagePrecision(t)
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// averagePrecision is the mean of the precisions at equally spaced recalls, each the highest one at that recall or
// above.
func (c *classDetections) averagePrecision(threshold int) float64 {
	precision, recall := make([]float64, len(c.found)), make([]float64, len(c.found))
	right := 0.0
	for i, f := range c.found {
		if f.matched&(1<<threshold) != 0 {
			right++
		}
		precision[i], recall[i] = right/float64(i+1), right/float64(c.labels)
	}
	for i := len(precision) - 2; i >= 0; i-- {
		// From behind, each becomes the highest precision at its recall or above.
		precision[i] = max(precision[i], precision[i+1])
	}
	sum := 0.0
	for k := range recallPoints {
		at, _ := slices.BinarySearch(recall, 0.01*float64(k))
		// A recall that is never reached has precision 0.
		if at < len(precision) {
			sum += precision[at]
		}
	}
	return sum / recallPoints
}
