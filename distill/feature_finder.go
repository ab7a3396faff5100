package distill

import (
	"errors"

	"github.com/mcompress/mcompress/ir"
)

// A featureFinder finds the features that compare a student with one teacher.
type featureFinder struct {
	student, teacher *structure
	teacherIndex     int  // number of the teacher
	masked           bool // both have a mask of padding
	cosine           bool // hidden states are compared by the cosine loss
}

func (s *settings) featureFinder(student, teacher *structure, of int) featureFinder {
	return featureFinder{
		student: student, teacher: teacher, teacherIndex: of,
		masked: student.visible() != nil && teacher.visible() != nil,
		cosine: s.Loss == "cosine",
	}
}

// ofKind returns the features of a kind, with weights relative to each other.
func (f featureFinder) ofKind(kind string) (fs featureList) {
	s, t := f.student, f.teacher
	pairs := s.pairs(t)
	transformers := len(s.attentions) > 0 && len(t.attentions) > 0
	for _, p := range pairs {
		switch {
		case kind == hints:
			fs = append(fs, f.hint(layerAt(p.student), layerAt(p.teacher)))
		case kind == attention && transformers:
			// State 0 is before the first layer: state i follows attention i-1.
			if p.student > 0 && p.teacher > 0 {
				fs = append(fs, f.probabilities(p.student-1, p.teacher-1)...)
			}
		case kind == attention && positions(s.tape.Shape(s.hidden[p.student])) > 1:
			fs = append(fs, f.transfer(layerAt(p.student), layerAt(p.teacher)))
		}
	}
	if kind == relations && transformers && len(pairs) > 0 {
		last := pairs[len(pairs)-1]
		return f.relations(last.student-1, last.teacher-1)
	}
	return fs
}

// pair returns the feature of a kind that compares two values by their names.
func (f featureFinder) pair(kind, student, teacher string) (feature, error) {
	from, to := valueOf(student), valueOf(teacher)
	v, u := from(f.student), to(f.teacher)
	shape, teachers := f.student.tape.Shape(v), f.teacher.tape.Shape(u)
	switch {
	case !f.student.comparable(v, f.teacher, u):
		return feature{}, errors.New("the shapes may differ in the number of channels only")
	case kind == hints:
		return f.hint(from, to), nil
	case kind == attention && positions(shape) > 1:
		return f.transfer(from, to), nil
	case kind == relations && len(shape) == 3 && len(teachers) == 3:
		return f.relation(tokenVectors(from), tokenVectors(to)), nil
	}
	return feature{}, errors.New("the values have too few axes")
}

// A selector selects a value of a graph.
type selector func(*structure) *ir.Value

// layerAt selects a hidden state.
func layerAt(i int) selector { return func(s *structure) *ir.Value { return s.hidden[i] } }

// valueOf selects a value by its name.
func valueOf(name string) selector { return func(s *structure) *ir.Value { return s.tape.Value(name) } }
