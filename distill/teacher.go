package distill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A teacher computes values of a model.
type teacher struct {
	session *engine.Interpreter
	held    int64    // bytes of its weights
	nodes   int      // of its graph
	values  []string // values of its graph that losses use
	caches  map[string]ownCache
}

// newTeacher opens a model for these values of it. add appends nodes to its canonical graph; nil for none.
func newTeacher(ctx context.Context, m *ir.Model, values []string, l *loader,
	add func(*grad.Tape) error) (*teacher, error) {
	tape, err := l.teacherTape(ctx, m, add)
	if err != nil {
		return nil, err
	}
	var outputs []*ir.Value
	for _, name := range values {
		v := tape.Value(name)
		if v == nil {
			return nil, fmt.Errorf("value %q is not available: it is inside a fused operator", name)
		}
		outputs = append(outputs, v)
	}
	tape.Graph().SetOutputs(outputs...)
	t := &teacher{values: values, nodes: tape.Graph().NodeCount(), caches: l.ownCaches(m)}
	if t.held, err = weightBytes(ctx, tape.Model, l.session()); err != nil {
		return nil, err
	}
	t.session, err = engine.Open(ctx, tape.Model, l.session())
	return t, err
}

// weightBytes returns the memory of a model's constants in a session, before operators prepack them.
func weightBytes(ctx context.Context, m *ir.Model, o engine.Options) (int64, error) {
	o.PlanOnly = true
	s, err := engine.Open(ctx, m, o)
	if err != nil {
		return 0, err
	}
	return s.ConstantBytes(), s.Close()
}

// teacherTape returns the graph of a teacher, for any batch size if the student supports any.
func (l *loader) teacherTape(ctx context.Context, m *ir.Model, add func(*grad.Tape) error) (*grad.Tape, error) {
	specs := map[string]ir.Spec{}
	inputs := dataset.Inputs(m.Graph)
	batch := probeBatch
	if l.fixedBatch > 0 {
		batch = l.fixedBatch
	}
	caches := l.ownCaches(m)
	for _, in := range inputs {
		spec, ok := l.specs(batch)[in.Name]
		if c, own := caches[in.Name]; own {
			spec, ok = ir.Spec{DType: c.t.Elem, Shape: c.shape(l.specs(batch)[c.like].Shape)}, true
		}
		if !ok && len(inputs) == 1 && len(l.inputs) == 1 {
			spec, ok = l.specs(batch)[l.inputs[0].Name], true // the only inputs may differ in name
		}
		if !ok {
			return nil, fmt.Errorf("its input %q is not an input of the student", in.Name)
		}
		specs[in.Name] = spec
	}
	tape, err := grad.New(ctx, m, grad.Options{Inputs: specs, Train: none, Change: l.rewrite(ctx),
		Append: add, Bare: true})
	if err != nil {
		return nil, err
	}
	// Types were inferred for one size, and the session runs with those of micro-batches and of the evaluator.
	for _, v := range tape.Graph().Inputs {
		if l.fixedBatch == 0 && len(v.Type.Shape) > 0 {
			v.Type.Shape[0] = ir.Dim{N: -1}
		}
	}
	return tape, nil
}

// outputs returns the values for the inputs of samples, by name. t may be nil.
func (t *teacher) outputs(ctx context.Context, in map[string]*ir.Array) (map[string]*ir.Array, error) {
	if t == nil {
		return nil, nil
	}
	out, err := t.session.Run(ctx, t.inputs(in), t.values)
	if err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	return out, nil
}

// An ownCache is a cache of a teacher that the student does not have, or has with fewer heads. It is empty like one of
// the student's.
type ownCache struct {
	like string // the input of the student
	t    *ir.Type
}

// shape is that of the cache, by the shape of the student's.
func (c ownCache) shape(like []int64) []int64 {
	shape := slices.Clone(like)
	for k, d := range c.t.Shape {
		if d.Known() {
			shape[k] = d.N
		}
	}
	return shape
}

var layerNumber = regexp.MustCompile(`[0-9]+`)

// ownCaches are those of a teacher, by input. They have the layout of the student's cache whose name differs in the
// number of the layer only.
func (l *loader) ownCaches(m *ir.Model) map[string]ownCache {
	own, student := map[string]ownCache{}, map[string]string{}
	for _, p := range dataset.Caches(l.model.Graph) {
		student[p.Input], student[layerNumber.ReplaceAllString(p.Input, "")] = p.Input, p.Input
	}
	caches := dataset.Caches(m.Graph)
	for _, v := range m.Graph.Inputs {
		if v.Type == nil || !slices.ContainsFunc(caches, func(p dataset.Pair) bool { return p.Input == v.Name }) {
			continue
		}
		c := ownCache{cmp.Or(student[v.Name], student[layerNumber.ReplaceAllString(v.Name, "")]), v.Type}
		like := l.sample[c.like].Shape
		if len(like) == len(v.Type.Shape) && (c.like != v.Name || !slices.Equal(c.shape(like), like)) {
			own[v.Name] = c
		}
	}
	return own
}

// inputs returns the teacher's inputs.
func (t *teacher) inputs(in map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range t.session.Inputs() {
		if c, own := t.caches[p.Name]; own {
			out[p.Name] = ir.NewArray(c.t.Elem, c.shape(in[c.like].Shape)...)
		} else if in[p.Name] != nil {
			out[p.Name] = in[p.Name]
		}
	}
	if len(out) == 0 && len(in) == 1 && len(t.session.Inputs()) == 1 { // the only inputs may differ in name
		for _, a := range in {
			out[t.session.Inputs()[0].Name] = a
		}
	}
	return out
}

// usage returns the size of the arena and of the outputs for inputs of these types; 0 if they cannot be planned.
func (t *teacher) usage(specs map[string]ir.Spec, workers int) (arena, outputs int64) {
	in := map[string]ir.Spec{}
	for name, a := range t.inputs(withoutDataOf(specs)) {
		in[name] = a.Spec()
	}
	u, err := t.session.UsageWith(in, workers)
	if err != nil {
		return 0, 0
	}
	return u.Plan.Size, u.Outputs
}

// withoutDataOf returns arrays of these types that have no data.
func withoutDataOf(specs map[string]ir.Spec) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for name, s := range specs {
		out[name] = withoutData(s)
	}
	return out
}

func (t *teacher) close() error {
	if t == nil || t.session == nil {
		return nil
	}
	return t.session.Close()
}

// teachers compute the targets of distillation losses: features of single teachers, and soft targets, which are the
// weighted means of their outputs.
type teachers struct {
	temperature float64
	each        []*teacher // nil for teachers without values in losses
	terms       []term
	weights     []float64     // of the teachers
	cache       *teacherCache // nil without caching
}

// newTeachers opens the teacher models for these losses; nil if none of them needs one.
func newTeachers(ctx context.Context, models []*ir.Model, terms []term, fs featureList,
	l *loader) (_ *teachers, err error) {
	values := make([][]string, len(models))
	for _, term := range terms {
		for _, s := range term.soft {
			values[s.teacherIndex] = append(values[s.teacherIndex], s.value)
		}
	}
	ts, some := &teachers{temperature: l.settings.Temperature, each: make([]*teacher, len(models)), terms: terms}, false
	if ts.weights, err = l.settings.teacherWeights(); err != nil {
		return nil, err
	}
	for i, m := range models {
		if len(values[i]) == 0 {
			continue
		}
		some = true
		if ts.each[i], err = newTeacher(ctx, m, distinct(values[i]), l, fs.ofTeacher(i)); err != nil {
			return ts, err
		}
	}
	if !some {
		return nil, nil
	}
	// Augmented samples differ from step to step, and so do the teacher's outputs for them.
	if l.settings.CacheTeacher && len(l.settings.Augment) == 0 {
		ts.cache = &teacherCache{folder: l.folder, present: map[int]bool{}}
	}
	return ts, nil
}

// targets returns the targets of a batch. ts may be nil.
func (ts *teachers) targets(ctx context.Context, targets []target, b *dataset.Batch,
	samples []int) ([]*ir.Array, error) {
	out, err := ts.soft(ctx, b, samples)
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = make([]*ir.Array, len(targets))
	}
	for i, target := range targets {
		switch {
		case target.soft != nil:
			continue
		case target.kind == nextToken:
			if out[i], err = nextTokens(b); err != nil {
				return nil, err
			}
			continue
		}
		labels, err := target.head.labels(b)
		if err != nil {
			return nil, err
		}
		rows := declaredShape(target.input)
		if int64(len(labels)) != elems(rows) {
			return nil, pass.OptionErrorf("%d labels of %d samples do not belong to output %q, which has scores of %v; name "+
				"another one with --scores", len(labels), b.N, target.head.output, rows)
		}
		for k, label := range labels {
			if label != dataset.NoLabel && (label < 0 || label >= target.n) {
				return nil, fmt.Errorf("label %d of sample %d is out of range: the classes of output %q are 0 to %d, and %d "+
					"is no label", label, samples[k/(len(labels)/b.N)], target.head.output, target.n-1, dataset.NoLabel)
			}
		}
		out[i] = ir.ArrayOf(labels, rows...)
	}
	return out, nil
}

// declaredShape is the shape of an input of a step.
func declaredShape(v *ir.Value) []int64 {
	var shape []int64
	for _, d := range v.Type.Shape {
		shape = append(shape, d.N)
	}
	return shape
}

// activeTeachers returns the teachers that have values in losses. ts may be nil.
func (ts *teachers) activeTeachers() []*teacher {
	if ts == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ts.each), func(t *teacher) bool { return t == nil })
}

func (ts *teachers) close() error {
	if ts == nil {
		return nil
	}
	errs := []error{ts.cache.close()}
	for _, t := range ts.activeTeachers() {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}
