package distill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Agreement is the default metric of training: top-1 agreement with the labels, or with the teacher without labels.
const Agreement = "agreement"

// An Evaluator is a function that measures a model from files with its outputs and those of a reference.
type Evaluator = metric.Evaluator

// WithMetric returns steps in which those that train, and have neither a metric nor an evaluator, have these ones;
// scores names the output that metrics measure. Empty and nil ones change nothing. Checkpoints recognize the evaluator
// by its identity.
func WithMetric(steps []pass.Options, name, scores string, e Evaluator, identity string) []pass.Options {
	return changeTraining(steps, func(o *FineTune) { o.measureBy(name, scores, e, identity) })
}

// Checkpoint is the file of the checkpoint that steps write, empty if they write none.
func Checkpoint(steps []pass.Options) (path string) {
	changeTraining(steps, func(o *FineTune) { path = cmp.Or(path, o.Save) })
	return path
}

// changeTraining returns steps with changed copies of those that train.
func changeTraining(steps []pass.Options, change func(*FineTune)) []pass.Options {
	out := slices.Clone(steps)
	for i, o := range out {
		switch o := o.(type) {
		case *FineTune:
			c := *o
			change(&c)
			out[i] = &c
		case *Distill:
			c := *o
			change((*FineTune)(&c))
			out[i] = &c
		case *Iterative:
			c := *o
			change(&c.FineTune)
			out[i] = &c
		case *Movement:
			c := *o
			change(&c.FineTune)
			out[i] = &c
		}
	}
	return out
}

func (o *FineTune) measureBy(name, scores string, e Evaluator, identity string) {
	if o.Metric == "" && o.Evaluator == nil {
		o.Metric, o.Evaluator, o.EvaluatorID = name, e, identity
	}
	if len(o.Scores) == 0 && scores != "" {
		o.Scores = strings.Split(scores, ",")
	}
}

// measure is the metric of the options, nil for agreement.
func (o *FineTune) measure() (metric.Measure, error) {
	switch {
	case o.Evaluator != nil && o.Metric != "":
		return nil, pass.OptionErrorf("Metric and Evaluator exclude each other")
	case o.Evaluator != nil:
		return o.Evaluator.Measure(), nil
	case o.Metric == "" || o.Metric == Agreement:
		return nil, nil
	}
	c, err := metric.Parse(o.Metric)
	if err != nil {
		return nil, pass.OptionErrorf("--metric: %w", err)
	}
	return c, nil
}

// A measurement measures the model on the validation set by the metric of the options.
type measurement struct {
	measure   metric.Measure
	names     []string   // outputs of the model that the evaluator's graph has
	outputs   []string   // those that may hold scores
	reference *reference // nil if the metric is of one model
}

// newMeasurement is nil if the options have no metric. The first teacher is the reference.
func newMeasurement(ctx context.Context, teachers []*ir.Model, l *loader) (*measurement, error) {
	by, err := l.settings.measure()
	if by == nil || err != nil {
		return nil, err
	}
	m := &measurement{measure: by}
	if len(l.validation) == 0 {
		return nil, pass.OptionErrorf("a metric requires a validation set; use --validate")
	}
	// An evaluator gets the reference, too, as it may compare; of the metrics only those that need one.
	if choice, ok := by.(*metric.Choice); len(teachers) == 0 || ok && choice.Needs != metric.Reference {
		return m, nil
	}
	m.reference, err = newReference(ctx, teachers[0], l)
	return m, err
}

// outputsOf are the values of the graph of tape that hold the outputs of the model.
func (m *measurement) outputsOf(tape *grad.Tape, model *ir.Graph, scores []string) ([]*ir.Value, error) {
	if m == nil {
		return nil, nil
	}
	var all []*ir.Value
	m.names = nil
	for _, y := range model.Outputs {
		if v := tape.Value(y.Name); v != nil {
			m.names, all = append(m.names, v.Name), append(all, v)
		}
	}
	for _, name := range scores {
		if !slices.Contains(m.names, name) {
			return nil, pass.OptionErrorf("--scores: unknown output %q", name)
		}
	}
	if m.outputs = m.names; len(scores) > 0 {
		m.outputs = scores
	}
	return all, nil
}

// newScorer returns the scorer of an evaluation; nil if m is nil.
func (m *measurement) newScorer() (metric.Scorer, error) {
	if m == nil {
		return nil, nil
	}
	return m.measure.New()
}

// addBatch measures the outputs of a batch.
func (m *measurement) addBatch(ctx context.Context, s metric.Scorer, b *dataset.Batch, out map[string]*ir.Array) error {
	if m == nil {
		return nil
	}
	of := &metric.Batch{Inputs: b.Inputs, Got: map[string]*ir.Array{}, Outputs: m.outputs, Labels: b.Labels,
		Targets: b.Targets, First: b.First, N: b.N}
	for _, name := range m.names {
		of.Got[name] = out[name]
	}
	var err error
	if of.Want, err = m.reference.outputs(ctx, b.Inputs); err != nil {
		return err
	}
	if err := s.Add(ctx, of); err != nil {
		return fmt.Errorf("validation set: %w", err)
	}
	return nil
}

// finish is the score of an evaluation, nil if m is nil.
func (m *measurement) finish(ctx context.Context, s metric.Scorer) (*metric.Score, error) {
	if m == nil {
		return nil, nil
	}
	score, err := s.Score(ctx)
	if err != nil {
		return nil, fmt.Errorf("validation set: %w", err)
	}
	return &score, nil
}

// models returns the teachers, and that which computes the reference of a metric. Both may be nil.
func models(ts *teachers, m *measurement) []*teacher {
	all := ts.activeTeachers()
	if m != nil && m.reference != nil {
		all = append(all, m.reference.teacher)
	}
	return all
}

func (m *measurement) close() error {
	if m == nil || m.reference == nil {
		return nil
	}
	return m.reference.close()
}

// lossOf orders scores: lower is better, and an undefined score is worse than any other one.
func lossOf(s *metric.Score) float64 {
	switch {
	case math.IsNaN(s.After):
		return math.MaxFloat64
	case s.HigherIsBetter:
		return -s.After
	}
	return s.After
}

// A reference is the model whose outputs metrics compare with those of the trained model: the teacher of --teacher, or
// the source.
type reference struct {
	*teacher
	as []string // the outputs' names in the trained model; empty for those that it does not have
}

func newReference(ctx context.Context, m *ir.Model, l *loader) (*reference, error) {
	names := namesOf(m.Graph.Outputs)
	t, err := newTeacher(ctx, m, names, l, nil)
	if err != nil {
		return nil, fmt.Errorf("reference of the metric: %w", err)
	}
	r := &reference{teacher: t, as: make([]string, len(names))}
	for i, at := range ir.Pair(namesOf(l.model.Graph.Outputs), names) {
		if at >= 0 {
			r.as[at] = l.model.Graph.Outputs[i].Name
		}
	}
	return r, nil
}

// outputs are those of the reference for inputs, by the names of the trained model; nil without a reference.
func (r *reference) outputs(ctx context.Context, in map[string]*ir.Array) (map[string]*ir.Array, error) {
	if r == nil {
		return nil, nil
	}
	out, err := r.teacher.outputs(ctx, in)
	if err != nil {
		return nil, err
	}
	named := map[string]*ir.Array{}
	for i, name := range r.as {
		if name != "" {
			named[name] = out[r.values[i]]
		}
	}
	return named, nil
}
