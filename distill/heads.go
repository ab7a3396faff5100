package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A head is an output whose classes are those of the labels.
type head struct {
	output string // of the model
	scores string // value of the class scores, before Softmax
	axis   int64  // of the classes: 1, or -1 for the last one
	column int    // the label of a sample that belongs to it; -1 for all of them
}

// heads returns the outputs that labels of this shape of a sample belong to: those of --scores, or the only one that
// they fit.
func (s *settings) heads(g *ir.Graph, labels []int64) ([]head, error) {
	if len(s.Scores) > 0 {
		return s.namedHeads(g, labels)
	}
	var hs []head
	for _, y := range uncached(g) {
		h, ok := headOf(y, labels, -1)
		// scores and their Softmax are one head
		if same := slices.ContainsFunc(hs, func(o head) bool { return o.scores == h.scores }); ok && !same {
			hs = append(hs, h)
		}
	}
	switch len(hs) {
	case 0:
		return nil, pass.OptionErrorf("no output has a score of each class for labels of shape %v of a sample: the "+
			"outputs are %s", labels, typeList(g.Outputs...))
	case 1:
		return hs, nil
	}
	return hs, pass.OptionErrorf("the labels may belong to several outputs, %s: name those that are trained with --scores",
		typeList(g.Outputs...))
}

// namedHeads returns the outputs of --scores. If there are as many labels of a sample, each output has one of them, in
// their order.
func (s *settings) namedHeads(g *ir.Graph, labels []int64) (hs []head, err error) {
	names := s.Scores
	each := len(names) > 1 && slices.Equal(labels, []int64{int64(len(names))})
	for i, name := range names {
		y, err := s.output(g, name)
		if err != nil {
			return nil, err
		}
		shape, column := labels, -1
		if each {
			shape, column = nil, i
		}
		h, ok := headOf(y, shape, column)
		if !ok {
			return nil, pass.OptionErrorf("--scores %s: the output has no score of each class for labels of shape %v of a "+
				"sample: the outputs are %s", name, labels, typeList(g.Outputs...))
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// checkScores reports names in --scores that are not those of one output each, also where no loss has labels.
func (s *settings) checkScores(g *ir.Graph) error {
	names := s.Scores
	for i, name := range names {
		if _, err := s.output(g, name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return pass.OptionErrorf("--scores: output %q is named twice", name)
		}
	}
	return nil
}

// output returns the output of --scores of this name.
func (s *settings) output(g *ir.Graph, name string) (*ir.Value, error) {
	for _, y := range g.Outputs {
		if y.Name == name {
			return y, nil
		}
	}
	return nil, pass.OptionErrorf("--scores: unknown output %q; the outputs are %s", name, typeList(g.Outputs...))
}

// headOf returns y as a head for labels of this shape of a sample. What the model does not declare fits.
func headOf(y *ir.Value, labels []int64, column int) (head, bool) {
	h := head{output: y.Name, scores: scores(y).Name, axis: 1, column: column}
	if y.Type == nil || y.Type.Shape == nil {
		return h, y.Type == nil || y.Type.Elem == ir.Undefined || y.Type.Elem.IsFloat()
	}
	dims := y.Type.Shape
	if !y.Type.Elem.IsFloat() || len(dims) < 2 {
		return h, false
	}
	if elems(labels) == 1 { // further axes of one element, as after global pooling
		rest := slices.ContainsFunc(dims[2:], func(d ir.Dim) bool { return d.N != 1 })
		return h, dims[1].N != 1 && !rest
	}
	last := len(dims) - 1
	first, end := haveSizes(dims[2:], labels) && dims[1].N != 1, haveSizes(dims[1:last], labels) && dims[last].N != 1
	if end && (!first || len(dims) == 3) { // tokens by classes, rather than classes by positions
		h.axis = -1
	}
	return h, first || end
}

func elems(shape []int64) int64 { return ir.Spec{DType: ir.Uint8, Shape: shape}.Elems() }

// haveSizes reports whether axes may have these sizes.
func haveSizes(dims []ir.Dim, sizes []int64) bool {
	if len(dims) != len(sizes) {
		return false
	}
	for i, d := range dims {
		if d.Known() && d.N != sizes[i] {
			return false
		}
	}
	return true
}

// labels returns the labels of a batch that belong to h, one for each row of scores.
func (h head) labels(b *dataset.Batch) ([]int64, error) {
	if b.Labels == nil || b.Labels.DType != ir.Int64 {
		return nil, pass.OptionErrorf("the labels are %s, not integers: cross-entropy requires classes", b.Labels)
	}
	all := ir.View[int64](b.Labels)
	if h.column < 0 {
		return all, nil
	}
	columns, own := len(all)/max(1, b.N), make([]int64, b.N)
	for i := range own {
		own[i] = all[i*columns+h.column]
	}
	return own, nil
}
