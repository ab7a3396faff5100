package distill

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A term is one summand of the loss.
type term struct {
	kind    string // key of losses
	student string // value of the student
	soft    []soft // values of teachers that it is compared with; nil for labels
	weight  float64
	head    head   // of cross-entropy
	output  string // of the student; empty for an intermediate value
	theirs  string // output of the first teacher; empty for labels
}

// A soft is a value of a teacher.
type soft struct {
	teacherIndex int // teacher
	value        string
}

// nextToken is the cross-entropy of a language model with the token after each token of a sample.
const nextToken = "next-token"

// noLoss is the loss of a training on features alone.
const noLoss = "none"

// losses are the operators of loss functions.
var losses = map[string]string{
	"cross-entropy": "CrossEntropyLoss",
	nextToken:       "CrossEntropyLoss",
	"kl":            "DistillLoss",
	"mse":           "MeanSquaredLoss",
	"cosine":        "CosineLoss",
	hints:           "MeanSquaredLoss",
	attention:       "MeanSquaredLoss",
	relations:       "DistillLoss",
}

// terms returns the terms of the loss. heads returns the outputs that labels belong to.
func (s *settings) terms(student *ir.Model, teachers []*ir.Model, fs featureList, labelled bool,
	heads func() ([]head, error)) ([]term, error) {
	alpha := s.labelWeight(labelled)
	var ts []term
	if s.Loss == nextToken {
		y, err := s.tokenScores(student.Graph)
		if err != nil {
			return nil, err
		}
		ts = append(ts, term{kind: nextToken, student: scores(y).Name, weight: alpha, output: y.Name})
	} else if alpha > 0 {
		if !labelled {
			return nil, pass.OptionErrorf("cross-entropy requires labels of classes, which are integers, and the data has " +
				"none; use --labels")
		}
		hs, err := heads()
		if err != nil {
			return nil, err
		}
		for _, h := range hs {
			ts = append(ts, term{kind: "cross-entropy", student: h.scores, weight: alpha, head: h, output: h.output})
		}
	}
	// Features may still need teachers, which they have checked; outputs need none.
	if alpha == 1 || s.Loss == noLoss {
		return append(ts, fs.terms()...), nil
	}
	if err := s.checkTeachers(teachers); err != nil {
		return nil, err
	}
	outputs, err := s.outputTerms(student, teachers, 1-alpha)
	return slices.Concat(ts, outputs, fs.terms()), err
}

// checkTeachers reports that there is no teacher but the model itself.
func (s *settings) checkTeachers(teachers []*ir.Model) error {
	if len(teachers) == 0 || s.itself {
		return pass.OptionErrorf("no training target: the data has no labels of one class per sample, and there is no " +
			"teacher but the model itself; use --labels or --teacher; language models are trained on tokens with --loss " +
			"next-token")
	}
	return nil
}

// tokenScores returns the output with a row of scores for each token: that of --scores, or the only one of three axes.
func (s *settings) tokenScores(g *ir.Graph) (*ir.Value, error) {
	const required = "--loss next-token requires an output of shape [samples, tokens, vocabulary]; name it with " +
		"--scores: the outputs are %s"
	names := s.Scores
	if len(names) == 1 {
		y, err := s.output(g, names[0])
		if err != nil {
			return nil, err
		}
		return y, nil
	}
	var found []*ir.Value
	for _, y := range uncached(g) {
		same := slices.ContainsFunc(found, func(o *ir.Value) bool { return scores(o) == scores(y) })
		if y.Type != nil && y.Type.Elem.IsFloat() && len(y.Type.Shape) == 3 && !same {
			found = append(found, y)
		}
	}
	if len(names) > 0 || len(found) != 1 {
		return nil, pass.OptionErrorf(required, typeList(g.Outputs...))
	}
	return found[0], nil
}

// labelWeight returns the weight of the cross-entropy with labels.
func (s *settings) labelWeight(labelled bool) float64 {
	switch {
	case s.Loss == "cross-entropy" || s.Loss == nextToken:
		return 1
	case s.Loss != "auto" || !labelled:
		return max(s.alpha, 0)
	case s.alpha >= 0:
		return s.alpha
	case len(s.Teacher) > 0:
		return 0.5
	}
	return 1
}

// outputTerms returns the terms that compare the outputs of student and teachers. Caches are not compared: a teacher
// with more layers or heads has others.
func (s *settings) outputTerms(student *ir.Model, teachers []*ir.Model, weight float64) ([]term, error) {
	ys := uncached(student.Graph)
	theirs := make([][]*ir.Value, len(teachers))
	for k, t := range teachers {
		var err error
		if theirs[k], err = pairOutputs(ys, uncached(t.Graph)); err != nil {
			return nil, err
		}
	}
	var ts []term
	for i, y := range ys {
		if y.Type != nil && y.Type.Elem != ir.Undefined && !y.Type.Elem.IsFloat() || weight == 0 {
			continue
		}
		kind := s.Loss
		if kind == "auto" {
			kind = "mse"
			if isScores(y) {
				kind = "kl"
			}
		}
		of := func(v *ir.Value) string {
			if kind == "kl" {
				// The divergence of softmax(x/T) needs the scores: a Softmax at the end of a model is left out.
				v = scores(v)
			}
			return v.Name
		}
		next := term{kind: kind, student: of(y), weight: weight, output: y.Name, theirs: theirs[0][i].Name}
		for k := range teachers {
			next.soft = append(next.soft, soft{k, of(theirs[k][i])})
		}
		ts = append(ts, next)
	}
	return ts, nil
}

// uncached are the outputs of g that are not caches of the next run.
func uncached(g *ir.Graph) []*ir.Value {
	caches := dataset.Caches(g)
	return slices.DeleteFunc(slices.Clone(g.Outputs), func(y *ir.Value) bool {
		return slices.ContainsFunc(caches, func(p dataset.Pair) bool { return p.Output == y.Name })
	})
}

// scores returns the input of the Softmax that computes v, or v itself.
func scores(v *ir.Value) *ir.Value {
	if n := v.Producer(); n != nil && operator.Of(n).Distribution {
		return n.Input(0)
	}
	return v
}

// isScores reports whether v holds class scores: the output of Softmax, or a matrix of several columns.
func isScores(v *ir.Value) bool {
	if scores(v) != v {
		return true
	}
	return v.Type != nil && len(v.Type.Shape) == 2 && v.Type.Shape[1].N != 1
}

// A target is the inputs of a step for a term: the labels or the teacher's values, and what belongs to them.
type target struct {
	term
	input *ir.Value
	scale *ir.Value // the fraction of what the step counts, times the loss scale
	keep  *ir.Value // 1 for tokens and 0 for padding; nil if the value has no tokens, or samples no padding
	n     int64     // classes of labels
}

// addLosses adds the losses to the forward graph of a number of samples of tokens, 0 if they may not have padding. It
// returns them, the gradients that start the backward pass, and the targets.
func (s *settings) addLosses(t *grad.Tape, terms []term, samples, tokens int64) (sum []*ir.Value,
	seeds map[*ir.Value]*ir.Value, targets []target, err error) {
	seeds = map[*ir.Value]*ir.Value{}
	for i, term := range terms {
		x := t.Value(term.student)
		if x == nil {
			return nil, nil, nil, fmt.Errorf("value %q is not available in training: it is inside a fused operator",
				term.student)
		}
		in, err := s.target(t, i, term, x)
		if err != nil {
			return nil, nil, nil, err
		}
		of := target{term: term, input: in, scale: t.Input(fmt.Sprintf("scale.%d", i), ir.Float), n: term.classes(t.Shape(x))}
		inputs := []*ir.Value{x, in, of.scale}
		if term.soft != nil && ofTokens(t.Shape(x), samples, tokens) {
			// Otherwise padding, whose outputs mean nothing, would be most of the loss of short texts.
			of.keep = t.Input(fmt.Sprintf("keep.%d", i), ir.Float, samples, tokens)
			inputs = append(inputs, of.keep)
		}
		out := t.Own(losses[term.kind], 2, inputs, s.lossAttrs(term)...)
		sum = append(sum, out[0])
		targets = append(targets, of)
		seed := out[1]
		if seeds[x] != nil {
			// Several terms on one value, such as labels and a teacher: Backward starts from the sum of their gradients.
			seed = t.Op("Add", []*ir.Value{seeds[x], seed})
		}
		seeds[x] = seed
	}
	return sum, seeds, targets, nil
}

// ofTokens reports whether a value of this shape has a row for each token of samples, which may be flattened.
func ofTokens(shape []int64, samples, tokens int64) bool {
	switch {
	case tokens == 0 || len(shape) < 2:
		return false
	case len(shape) == 2 && shape[0] == samples*tokens && samples*tokens > samples:
		return true
	}
	return len(shape) == 3 && shape[0] == samples && shape[1] == tokens
}

func (s *settings) lossAttrs(t term) []*ir.Attr {
	attrs := []*ir.Attr{ir.FloatAttr("weight", float32(t.weight))}
	switch t.kind {
	case "kl":
		attrs = append(attrs, ir.FloatAttr("temperature", float32(s.Temperature)), ir.IntAttr("axis", -1))
	case relations:
		attrs = append(attrs, ir.IntAttr("axis", -1))
	case "cross-entropy":
		attrs = append(attrs, ir.FloatAttr("smoothing", float32(s.LabelSmoothing)), ir.IntAttr("axis", t.head.axis),
			ir.IntAttr("ignore_index", dataset.NoLabel))
	case nextToken:
		attrs = append(attrs, ir.FloatAttr("smoothing", float32(s.LabelSmoothing)), ir.IntAttr("axis", -1),
			ir.IntAttr("ignore_index", noToken))
	}
	return attrs
}

// target adds the input for the target of term i, whose student value is x.
func (s *settings) target(t *grad.Tape, i int, term term, x *ir.Value) (*ir.Value, error) {
	shape := t.Shape(x)
	if t.DType(x) != ir.Float {
		return nil, fmt.Errorf("value %q is %s; training supports float32", x.Name, t.DType(x))
	}
	// The shape of the student: a teacher of another one is an error of its first batch.
	if term.soft != nil {
		return t.Input(fmt.Sprintf("teacher.%d", i), ir.Float, shape...), nil
	}
	if term.kind == nextToken {
		if len(shape) != 3 {
			return nil, fmt.Errorf("value %q of shape %v has no row of scores for each token; --loss next-token requires "+
				"the shape [samples, tokens, vocabulary]", x.Name, shape)
		}
		return t.Input("tokens", ir.Int64, shape[:2]...), nil
	}
	if len(shape) < 2 {
		return nil, pass.OptionErrorf("output %q of shape %v has no class scores; cross-entropy requires the shape "+
			"[samples, classes]", term.head.output, shape)
	}
	return t.Input(fmt.Sprintf("labels.%d", i), ir.Int64, term.head.rows(shape)...), nil
}

// classes is the number of classes of scores of this shape.
func (t term) classes(shape []int64) int64 {
	if t.kind == "cross-entropy" && t.head.axis > 0 {
		return shape[t.head.axis]
	}
	return shape[len(shape)-1]
}

// rows is the shape of scores without the axis of classes.
func (h head) rows(shape []int64) []int64 {
	axis := int(h.axis)
	if axis < 0 {
		axis += len(shape)
	}
	return slices.Delete(slices.Clone(shape), axis, axis+1)
}

// noToken is the target of tokens without a following one, such as the last one of a sample.
const noToken = -1

// nextTokens returns the token after each token of a batch, [samples, tokens].
func nextTokens(b *dataset.Batch) (*ir.Array, error) {
	if b.Targets == nil {
		return nil, errors.New("--loss next-token requires a model with an input of token ids, [samples, tokens]")
	}
	all := make([]int64, 0, len(b.Targets)*(len(b.Targets[0])+1))
	for _, row := range b.Targets {
		all = append(append(all, row...), noToken)
	}
	return ir.ArrayOf(all, int64(b.N), int64(len(all)/max(1, b.N))), nil
}
