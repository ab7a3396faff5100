package distill

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// hint compares hidden states, by a projection of the student's where widths differ (Romero et al., FitNets, 2015,
// arXiv:1412.6550).
func (f featureFinder) hint(from, to selector) feature {
	v, u := from(f.student), to(f.teacher)
	axis := f.student.channels(v)
	x := feature{kind: hints, weight: 1, teacherIndex: f.teacherIndex}
	if f.cosine {
		x.kind = "cosine"
	}
	if width, teachers := f.student.tape.Shape(v)[axis], f.teacher.tape.Shape(u)[axis]; width != teachers {
		x.projection = newProjection(f.student.tape.Shape(v), axis, teachers)
	}
	masked := f.masked && len(f.student.tape.Shape(v)) == 3
	x.student = func(s *structure) *ir.Value {
		y := from(s)
		if x.projection != nil {
			y = x.projection.apply(s.tape, y)
		}
		return s.withoutPadding(y, masked, -1, 1)
	}
	x.teacher = func(s *structure) *ir.Value { return s.withoutPadding(to(s), masked, -1, 1) }
	return x
}

// transfer compares attention maps of channels: sums of squares over the channels, as vectors of length 1. The loss is
// the squared distance (Zagoruyko and Komodakis, Paying More Attention to Attention, 2017, arXiv:1612.03928).
func (f featureFinder) transfer(from, to selector) feature {
	n := positions(f.student.tape.Shape(from(f.student)))
	maps := func(of selector) selector {
		return func(s *structure) *ir.Value {
			t := s.tape
			x := of(s)
			q := t.Reshape(t.Op("ReduceSumSquare", []*ir.Value{x, t.Ints(1)}, ir.IntAttr("keepdims", 0)), []int64{-1, n})
			length := t.Op("ReduceL2", []*ir.Value{q, t.Ints(1)}, ir.IntAttr("keepdims", 1))
			return t.Op("Div", []*ir.Value{q, t.Op("Add", []*ir.Value{length, t.Scalar(t.DType(x), 1e-12)})})
		}
	}
	// MeanSquaredLoss is a mean over samples and positions: times n it is the squared distance of each sample.
	return feature{kind: attention, weight: float64(n), teacherIndex: f.teacherIndex, student: maps(from),
		teacher: maps(to)}
}

// positions returns the number of positions of images, or of what has a batch axis, channels and further axes; 1 for
// less.
func positions(shape []int64) int64 {
	n := int64(1)
	for i := 2; i < len(shape); i++ {
		n *= shape[i]
	}
	return n
}

// probabilities compares the attention probabilities of layers: the squared distance between the distributions of each
// query (Jiao et al., TinyBERT, 2020, arXiv:1909.10351, section 3.1). Different numbers of heads are averaged.
func (f featureFinder) probabilities(i, j int) featureList {
	a, b := f.student.attentions[i], f.teacher.attentions[j]
	if a.Queries != b.Queries || a.Keys != b.Keys {
		return nil
	}
	of := func(i int) selector {
		return func(s *structure) *ir.Value {
			p := s.attentions[i].Probabilities()
			if a.Heads != b.Heads {
				p = s.tape.Op("ReduceMean", []*ir.Value{p, s.tape.Ints(1)}, ir.IntAttr("keepdims", 1))
			}
			return s.withoutPadding(p, f.masked && a.Queries == a.Keys, -1, 1, 1)
		}
	}
	// Times the number of keys: the distance is a sum over the keys of each query, the loss a mean.
	return featureList{{kind: attention, weight: float64(a.Keys), teacherIndex: f.teacherIndex, student: of(i),
		teacher: of(j)}}
}

// vectors are the vectors of tokens, [batch, heads, tokens, size], and their shape.
type vectors func(*structure) (*ir.Value, []int64)

// relations compares the relations of queries, of keys and of values of two layers.
func (f featureFinder) relations(i, j int) (fs featureList) {
	a, b := f.student.attentions[i], f.teacher.attentions[j]
	if a.Queries != b.Queries || a.Keys != b.Keys || a.Queries != a.Keys {
		return nil
	}
	for operand := range 3 {
		of := func(layer int) vectors {
			return func(s *structure) (*ir.Value, []int64) { return s.attentions[layer].Operand(operand) }
		}
		fs = append(fs, f.relation(of(i), of(j)))
	}
	return fs
}

// tokenVectors views a value [batch, tokens, width] as vectors of one head.
func tokenVectors(of selector) vectors {
	return func(s *structure) (*ir.Value, []int64) {
		v := of(s)
		shape := s.tape.Shape(v)
		return s.tape.Reshape(v, []int64{-1, 1, shape[1], shape[2]}), []int64{shape[0], 1, shape[1], shape[2]}
	}
}

// relation compares scaled products of the vectors of tokens with each other: the divergence between the softmax of the
// teacher's and that of the student's (Wang et al., MiniLM, 2020, arXiv:2002.10957, and MiniLMv2, 2021,
// arXiv:2012.15828). Widths may differ, since both have the same number of relation heads: that of the teacher's heads
// if it divides both widths.
func (f featureFinder) relation(from, to vectors) feature {
	_, a := from(f.student)
	_, b := to(f.teacher)
	heads := int64(1)
	for _, n := range []int64{a[1], f.student.heads(), b[1], f.teacher.heads()} {
		// The last one that divides both widths: the teacher's heads, if possible.
		if n > 0 && a[1]*a[3]%n == 0 && b[1]*b[3]%n == 0 {
			heads = n
		}
	}
	scores := func(of vectors) selector {
		return func(s *structure) *ir.Value {
			x, shape := of(s)
			r := s.tape.Relations(x, shape, heads)
			// The additive mask of the attention: padding gets no probability.
			if f.masked {
				r = s.tape.Op("Add", []*ir.Value{r, s.attentions[0].Mask()})
			}
			return s.withoutPadding(r, f.masked, -1, 1, 1)
		}
	}
	return feature{kind: relations, weight: 1, teacherIndex: f.teacherIndex, student: scores(from), teacher: scores(to)}
}

// heads returns the number of heads; 0 without attention.
func (s *structure) heads() int64 {
	if len(s.attentions) == 0 {
		return 0
	}
	return s.attentions[0].Heads
}

// visible returns 1 for tokens and 0 for padding, [batch or 1, tokens]; nil without self-attention that has a mask of
// this form.
func (s *structure) visible() *ir.Value {
	if s.padding == nil && len(s.attentions) > 0 && s.attentions[0].Queries == s.attentions[0].Keys {
		s.padding = s.attentions[0].VisibleKeys()
	}
	return s.padding
}

// withoutPadding sets the rows of padding to 0 if masked is set, so that they do not count. before and after are the
// axes of v around that of tokens.
func (s *structure) withoutPadding(v *ir.Value, masked bool, axes ...int64) *ir.Value {
	if !masked {
		return v
	}
	tokens := s.attentions[0].Keys
	shape := slices.Insert(slices.Clone(axes), len(axes)-1, tokens)
	return s.tape.Op("Mul", []*ir.Value{v, s.tape.Reshape(s.visible(), shape)})
}
