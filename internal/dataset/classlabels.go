package dataset

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// bindLabels determines the form of labels, which is the same for all samples: classes are Int64. Integers of any width
// are classes; so are floats if all are whole; words are numbered by their names, and a one-hot row is the position of
// its 1. Other floats are kept. A label that is missing, NaN or an empty word, is an error.
func (t *table) bindLabels(outputs []Input) error {
	c := t.samples.labels
	if c == nil {
		return nil
	}
	whole := isInteger(c.row().DType)
	var err error
	switch row := c.row(); {
	case row.DType == ir.String && elems(row.Shape) == 1 && !t.opts.Verbatim:
		c, t.samples.classes, err = t.opts.numberWords(c)
		whole = true
	case row.DType.IsFloat():
		whole, err = areWhole(c)
	}
	if err != nil {
		return err
	}
	if whole && !t.opts.Verbatim && t.scores(outputs, c.row().Shape) {
		if c, err = hotPositions(c); err != nil {
			return err
		}
	}
	in := Input{Name: "labels", Type: &ir.Type{Elem: c.row().DType}}
	if whole {
		in.Type.Elem = ir.Int64
	}
	b, err := t.bind(in, c, nil, Options{Scale: 1})
	t.labels = &b
	return err
}

// NoLabel is the class of what has no label: training has no loss for it, as in PyTorch, and metrics count no negative
// class.
const NoLabel = -100

// eachLabel calls f with the numbers of each sample of c.
func eachLabel(c column, f func(sample int, row []float64) error) error {
	read := reader[float64](c.row().DType)
	if read == nil {
		return fmt.Errorf("%s: labels of type %s are not supported; give integers", c.row().Name, c.row().DType)
	}
	each := elems(c.row().Shape)
	return eachBlock(c, func(first int, a *ir.Array) error {
		row := make([]float64, each)
		for i := range a.Shape[0] {
			read(row, a, i*each)
			if err := f(first+int(i), row); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachBlock calls f with blocks of samples of c, in order.
func eachBlock(c column, f func(first int, a *ir.Array) error) error {
	// Labels of pixels may be large: a block is bounded in bytes, not in samples.
	size := int(max(1, ir.CopyBuffer/max(1, c.held(1))))
	for first := 0; first < int(c.rows()); first += size {
		index := make([]int, min(size, int(c.rows())-first))
		for i := range index {
			index[i] = first + i
		}
		load, err := c.load(index, nil)
		if err != nil {
			return err
		}
		a, err := load()
		if err != nil {
			return err
		}
		if err := f(first, a); err != nil {
			return err
		}
	}
	return nil
}

// maxWhole is the largest integer up to which float64 has all of them.
const maxWhole = 1 << 53

// areWhole reports whether all labels of floats are integers. NaN is an error.
func areWhole(c column) (bool, error) {
	whole := true
	err := eachLabel(c, func(sample int, row []float64) error {
		for _, x := range row {
			if math.IsNaN(x) {
				return fmt.Errorf("%s: the label of sample %d is missing (NaN); remove the sample, or give it the label %d, "+
					"which counts nowhere", c.row().Name, sample, NoLabel)
			}
			whole = whole && x == math.Trunc(x) && math.Abs(x) <= maxWhole
		}
		return nil
	})
	return whole, err
}

// scores reports whether labels of this shape of a sample may be one-hot: a list, as long as the scores of an output
// for a sample.
func (t *table) scores(outputs []Input, shape []int64) bool {
	if len(shape) != 1 || shape[0] < 2 {
		return false
	}
	return slices.ContainsFunc(outputs, func(out Input) bool {
		if !out.elem().IsFloat() {
			return false
		}
		dims := out.dims(t.opts.Dims)
		if dims == nil {
			return true
		}
		_, ok := fitSqueezed(dims[min(1, len(dims)):], shape)
		return ok
	})
}

// hotPositions are the classes of one-hot labels; c if one is not one-hot.
func hotPositions(c column) (column, error) {
	classes := make([]int64, 0, c.rows())
	err := eachLabel(c, func(_ int, row []float64) error {
		ones := 0
		for at, x := range row {
			switch x {
			case 0:
			case 1:
				ones++
				classes = append(classes, int64(at))
			default:
				return errNotHot
			}
		}
		if ones != 1 {
			return errNotHot
		}
		return nil
	})
	if errors.Is(err, errNotHot) {
		return c, nil
	}
	return inMemory(c.row().Name, classes), err
}

var errNotHot = errors.New("a label is not one-hot")

// numberWords are the numbers of the classes of labels that are words, and the names of all classes.
func (o Options) numberWords(c column) (column, []string, error) {
	words, err := wordsOf(c)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]int64{}
	for _, w := range words {
		seen[w] = 0
	}
	names := slices.Sorted(maps.Keys(seen))
	numbers, classes, err := o.numberClasses(c.row().Name, names)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range names {
		seen[name] = numbers[i]
	}
	labels := make([]int64, len(words))
	for i, w := range words {
		labels[i] = seen[w]
	}
	return inMemory(c.row().Name, labels), classes, nil
}

// wordsOf are the labels of all samples, which are words. An empty one is an error.
func wordsOf(c column) ([]string, error) {
	if c.held(c.rows()) > maxLabelBytes {
		return nil, fmt.Errorf("%s: labels of more than %d GiB", c.row().Name, maxLabelBytes>>30)
	}
	var words []string
	err := eachBlock(c, func(first int, a *ir.Array) error {
		for i, w := range a.Text {
			if w = strings.TrimSpace(w); w == "" {
				return fmt.Errorf("%s: the label of sample %d is missing", c.row().Name, first+i)
			}
			words = append(words, w)
		}
		return nil
	})
	return words, err
}

// drawEvenly are samples of a number, in order: as many of each class as there are, up to equal numbers. Negative
// classes, which do not count, are the last.
func drawEvenly(classes []int64, limit int) []int {
	seen, round := map[int64]int{}, make([]int, len(classes)) // the round in which a sample is drawn
	for i, class := range classes {
		if round[i] = seen[class]; class < 0 {
			// No other class has as many rounds.
			round[i] += len(classes)
		}
		seen[class]++
	}
	order := make([]int, len(classes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return round[a] - round[b] })
	// Of the last round, which is not complete, samples spread evenly.
	last := round[order[limit-1]]
	begin, _ := slices.BinarySearchFunc(order, last, func(i, r int) int { return round[i] - r })
	end, _ := slices.BinarySearchFunc(order, last+1, func(i, r int) int { return round[i] - r })
	for i := range limit - begin {
		order[begin+i] = order[begin+i*(end-begin)/(limit-begin)]
	}
	order = order[:limit]
	slices.Sort(order)
	return order
}

// draw sets the samples of Options.Limit. Of data without classes they are the first ones.
func (s *Set) draw() error {
	t, ok := s.feed.(*table)
	if !ok || !s.Classified() || s.opts.Limit == 0 || s.opts.Limit >= t.len() {
		return nil
	}
	classes := make([]int64, 0, t.n)
	if err := eachLabel(t.labels.column, func(_ int, row []float64) error {
		classes = append(classes, int64(row[0]))
		return nil
	}); err != nil {
		return err
	}
	s.drawn = drawEvenly(classes, s.opts.Limit)
	return nil
}
