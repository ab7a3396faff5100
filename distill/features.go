package distill

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Kinds of features, which are loss functions of intermediate values.
const (
	hints     = "hidden"
	attention = "attention"
	relations = "relations"
)

var featureKinds = []string{hints, attention, relations}

// A feature is an intermediate value of the student that is compared with one of a teacher. Both are computed by nodes
// appended to the canonical graphs.
type feature struct {
	kind             string // key of losses
	weight           float64
	teacherIndex     int // teacher
	student, teacher selector
	projection       *projection // nil for equal widths
}

// A featureList is the features of a training, found in the graphs of the student and of the teachers.
type featureList []feature

// features finds the features of --features and --match in the graphs of student and teachers.
func (l *loader) features(ctx context.Context, teachers []*ir.Model) (featureList, error) {
	if len(l.settings.Features) == 0 && len(l.settings.Match) == 0 && l.settings.Loss != noLoss {
		return nil, nil
	}
	if err := l.settings.checkTeachers(teachers); err != nil {
		return nil, err
	}
	var found []*structure
	find := func(tape *grad.Tape) error {
		found = append(found, structureOf(tape))
		return nil
	}
	if _, err := grad.New(ctx, l.model, grad.Options{Inputs: l.smallest(), Train: l.params.trainable,
		Change: l.rewrite(ctx), Append: find, Bare: true}); err != nil {
		return nil, err
	}
	for _, m := range teachers {
		if _, err := l.teacherTape(ctx, m, find); err != nil {
			return nil, fmt.Errorf("teacher: %w", err)
		}
	}
	return l.settings.findFeatures(found[0], found[1:])
}

// findFeatures returns the features of --features and --match. Each kind of --features has the weight of
// --feature-weight, divided equally.
func (s *settings) findFeatures(student *structure, teachers []*structure) (fs featureList, err error) {
	weights, err := s.teacherWeights()
	if err != nil {
		return nil, err
	}
	for _, kind := range s.featureKinds(student, teachers) {
		found := false
		for i, t := range teachers {
			of := s.featureFinder(student, t, i).ofKind(kind)
			for _, f := range of {
				f.weight *= s.FeatureWeight / float64(len(of))
				fs, found = append(fs, f), true
			}
		}
		if !found {
			return nil, pass.OptionErrorf("--features %s: none found in both student and teacher; name pairs of values "+
				"with --match", kind)
		}
	}
	matched, err := s.featuresByName(student, teachers)
	fs = append(fs, matched...)
	for i, f := range fs {
		fs[i].weight *= weights[f.teacherIndex]
		if f.projection != nil {
			// A seed of its own: projections of one size would start equal.
			f.projection.initialize(fmt.Sprintf("projection.%d", i), *s.Seed+uint64(i))
		}
	}
	return fs, err
}

// featureKinds returns the kinds of --features. Where nothing but features is trained and none are given, they are
// hidden states and attention, as far as student and teachers have them.
func (s *settings) featureKinds(student *structure, teachers []*structure) []string {
	if len(s.Features) > 0 || len(s.Match) > 0 || s.Loss != noLoss {
		return s.Features
	}
	var kinds []string
	for _, kind := range []string{hints, attention} {
		if slices.ContainsFunc(teachers, func(t *structure) bool {
			return len(s.featureFinder(student, t, 0).ofKind(kind)) > 0
		}) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = []string{hints}
	}
	s.Features = kinds
	s.choose("features", s.Features.String(), "kinds that both models have")
	return kinds
}

// featuresByName returns the features of --match, for all teachers that have the value.
func (s *settings) featuresByName(student *structure, teachers []*structure) (fs featureList, err error) {
	for _, pair := range s.Match {
		kind, names := hints, pair
		if prefix, rest, ok := strings.Cut(pair, ":"); ok && slices.Contains(featureKinds, prefix) {
			kind, names = prefix, rest
		}
		x, y, ok := strings.Cut(names, "=")
		if !ok {
			return nil, pass.OptionErrorf("--match %s: must be teacher=student", pair)
		}
		found := false
		for i, t := range teachers {
			if t.tape.Value(x) == nil || student.tape.Value(y) == nil {
				continue
			}
			found = true
			more, err := s.featureFinder(student, t, i).pair(kind, y, x)
			if err != nil {
				return nil, pass.OptionErrorf("--match %s: %w", pair, err)
			}
			fs = append(fs, more)
		}
		if !found {
			return nil, pass.OptionErrorf("--match %s: both must be values in the main graphs, and not inside of "+
				"fused operators", pair)
		}
	}
	return fs, nil
}

// ofStudent returns what appends the features of the student, with their projections, to its canonical graph; nil
// without features.
func (fs featureList) ofStudent() func(*grad.Tape) error {
	return fs.appending(func(f feature) selector { return f.student })
}

// ofTeacher returns what appends the features of a teacher to its canonical graph; nil without any.
func (fs featureList) ofTeacher(of int) func(*grad.Tape) error {
	return fs.appending(func(f feature) selector {
		if f.teacherIndex != of {
			return nil
		}
		return f.teacher
	})
}

func (fs featureList) appending(part func(feature) selector) func(*grad.Tape) error {
	if !slices.ContainsFunc(fs, func(f feature) bool { return part(f) != nil }) {
		return nil
	}
	return func(t *grad.Tape) error {
		s := structureOf(t)
		for i, f := range fs {
			if of := part(f); of != nil {
				t.Op("Identity", []*ir.Value{of(s)}).Name = featureName(i)
			}
		}
		return nil
	}
}

// featureName is the name of the value of feature i in both graphs.
func featureName(i int) string { return fmt.Sprintf("feature.%d", i) }

// terms are those of the loss.
func (fs featureList) terms() (ts []term) {
	for i, f := range fs {
		ts = append(ts, term{kind: f.kind, student: featureName(i), soft: []soft{{f.teacherIndex, featureName(i)}},
			weight: f.weight})
	}
	return ts
}
