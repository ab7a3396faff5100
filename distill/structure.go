package distill

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A structure is the intermediate values of a model that distillation compares, found in its graph.
type structure struct {
	tape *grad.Tape
	// hidden are the hidden states of a transformer, [batch, tokens, width]: the embeddings and the result of each
	// layer. Of other models they are the last activations of each spatial size, and those before each layer of units.
	hidden     []*ir.Value
	attentions []grad.AttentionLayer // one for each layer of a transformer
	padding    *ir.Value             // see visible
}

// structureOf finds the structure of a canonical graph.
func structureOf(t *grad.Tape) *structure {
	s := &structure{tape: t, attentions: t.Attentions()}
	cuts := t.Cuts()
	if len(s.attentions) == 0 {
		s.hidden = stagesOf(t, cuts)
		return s
	}
	// The state before each attention is the last cut that it depends on. The one after the last layer is found below.
	for _, a := range s.attentions {
		if before := a.Before(cuts); len(before) > 0 {
			s.hidden = append(s.hidden, before[len(before)-1])
		}
	}
	// The last cut of the shape of a state: those of the head, after the layers, have another one.
	for _, v := range slices.Backward(cuts) {
		if len(s.hidden) > 0 && slices.Equal(t.Shape(v), t.Shape(s.hidden[0])) {
			s.hidden = append(s.hidden, v)
			break
		}
	}
	s.hidden = slices.Compact(s.hidden)
	// Only a stack of layers has a state before each attention and one after the last: others are not matched by
	// depth.
	if len(s.hidden) != len(s.attentions)+1 || len(t.Shape(s.hidden[0])) != 3 {
		s.hidden = nil
	}
	return s
}

// stagesOf returns the last of the cuts of each spatial size, and those that layers of units consume. The scores of the
// model are none of them.
func stagesOf(t *grad.Tape, cuts []*ir.Value) []*ir.Value {
	var out []*ir.Value
	for i, v := range cuts[:max(0, len(cuts)-1)] {
		shape, next := t.Shape(v), t.Shape(cuts[i+1])
		switch {
		// The last one before the spatial size changes: each stage is compared at its end, as by FitNets.
		case len(shape) > 2 && (len(next) != len(shape) || !slices.Equal(shape[2:], next[2:])):
		case len(shape) == 2 && operator.Of(cuts[i+1].Producer()).Layer() && !isView(v):
		default:
			continue
		}
		out = append(out, v)
	}
	return out
}

// isView reports whether v has the elements of another value.
func isView(v *ir.Value) bool { return operator.Of(v.Producer()).Move == operator.View }

// A layerPair is a hidden state of the student and that of the teacher with which it is compared.
type layerPair struct{ student, teacher int }

// pairs matches hidden states: by their names if both models have the same ones, of convolutional networks by their
// spatial size, and otherwise uniformly, which assigns layer n·i/k of n of the teacher to layer i of k (Jiao et al.,
// TinyBERT, 2020, arXiv:1909.10351, section 3.1). Names of models of different depth do not count: exporters number
// values, so that equal names are at different depths.
func (s *structure) pairs(t *structure) []layerPair {
	if pairs := s.pairsByName(t); pairs != nil {
		return pairs
	}
	var pairs []layerPair
	if len(s.attentions) > 0 {
		k, n := len(s.hidden)-1, len(t.hidden)-1
		for i := 0; i <= k && k > 0 && n > 0; i++ {
			pairs = append(pairs, layerPair{i, uniform(i, k, n)})
		}
		return pairs
	}
	units, teacherUnits := s.vectors(), t.vectors()
	for i, v := range s.hidden {
		j := slices.IndexFunc(t.hidden, func(u *ir.Value) bool { return s.comparable(v, t, u) && len(s.tape.Shape(v)) > 2 })
		// Layers of units have no spatial size to be matched by: they are matched by their depth.
		if at := slices.Index(units, i); at >= 0 && len(teacherUnits) > 0 {
			j = teacherUnits[uniform(at+1, len(units), len(teacherUnits))-1]
		}
		if j >= 0 {
			pairs = append(pairs, layerPair{i, j})
		}
	}
	return pairs
}

// uniform returns the layer of n that corresponds to layer i of k.
func uniform(i, k, n int) int {
	if i == 0 {
		return 0
	}
	return max(1, int(math.Round(float64(i)*float64(n)/float64(k))))
}

// pairsByName matches hidden states of equal names; nil if the models do not have the same ones.
func (s *structure) pairsByName(t *structure) []layerPair {
	if len(s.hidden) != len(t.hidden) {
		return nil
	}
	var pairs []layerPair
	for i, v := range s.hidden {
		j := slices.IndexFunc(t.hidden, func(u *ir.Value) bool { return u.Name == v.Name && s.comparable(v, t, u) })
		if j < 0 {
			return nil
		}
		pairs = append(pairs, layerPair{i, j})
	}
	return pairs
}

// vectors returns the positions of hidden states of two axes.
func (s *structure) vectors() (at []int) {
	for i, v := range s.hidden {
		if len(s.tape.Shape(v)) == 2 {
			at = append(at, i)
		}
	}
	return at
}

// comparable reports whether v and u of t have the same axes but for the batch and the channels.
func (s *structure) comparable(v *ir.Value, t *structure, u *ir.Value) bool {
	a, b := slices.Clone(s.tape.Shape(v)), slices.Clone(t.tape.Shape(u))
	if len(a) != len(b) || len(a) < 2 {
		return false
	}
	c := s.channels(v)
	a[0], a[c], b[0], b[c] = 0, 0, 0, 0
	return slices.Equal(a, b)
}

// channels returns the axis of channels of v: the last one of a transformer and of vectors, otherwise the second one.
func (s *structure) channels(v *ir.Value) int {
	if len(s.attentions) > 0 && len(s.tape.Shape(v)) == 3 {
		return 2
	}
	return 1
}
