package distill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A teacher computes the soft targets of distillation losses.
type teacher struct {
	session *engine.Interpreter
	held    int64         // bytes of its weights
	values  []string      // values of its graph that losses use
	cache   *teacherCache // nil without caching
}

// newTeacherOf opens the teacher model for these losses; nil if none of them needs it.
func newTeacherOf(ctx context.Context, m *ir.Model, terms []term, l *loader) (*teacher, error) {
	var values []string
	for _, term := range terms {
		if term.teacher != "" && !slices.Contains(values, term.teacher) {
			values = append(values, term.teacher)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	t, err := newTeacher(ctx, m, values, l)
	if err == nil && l.settings.CacheTeacher && l.settings.Augment == "" {
		t.cache = &teacherCache{folder: l.folder, known: map[int]bool{}}
	}
	return t, err
}

// newTeacher opens a model for these values of it.
func newTeacher(ctx context.Context, m *ir.Model, values []string, l *loader) (*teacher, error) {
	model, err := teacherGraph(ctx, m, values, l)
	if err != nil {
		return nil, err
	}
	t := &teacher{values: values}
	if t.held, err = weightBytes(ctx, model, l.session()); err != nil {
		return nil, err
	}
	t.session, err = engine.Open(ctx, model, l.session())
	return t, err
}

// weightBytes returns the memory of a model's constants in a session, before operators prepack them.
func weightBytes(ctx context.Context, m *ir.Model, o engine.Options) (sum int64, err error) {
	o.PlanOnly = true
	s, err := engine.Open(ctx, m, o)
	if err != nil {
		return 0, err
	}
	for _, c := range s.Constants() {
		sum += c.Bytes()
	}
	return sum, s.Close()
}

// teacherGraph returns m with these values as its outputs, for any batch size if the student supports any.
func teacherGraph(ctx context.Context, m *ir.Model, values []string, l *loader) (*ir.Model, error) {
	specs := map[string]ir.Spec{}
	inputs := dataset.Inputs(m.Graph)
	batch := 2
	if l.fixedBatch > 0 {
		batch = l.fixedBatch
	}
	for _, in := range inputs {
		spec, ok := l.specs(batch)[in.Name]
		if !ok && len(inputs) == 1 && len(l.inputs) == 1 {
			spec, ok = l.specs(batch)[l.inputs[0].Name], true // the only inputs may differ in name
		}
		if !ok {
			return nil, fmt.Errorf("its input %q is not an input of the student", in.Name)
		}
		specs[in.Name] = spec
	}
	tape, err := grad.New(ctx, m, grad.Options{Inputs: specs, Train: none, Change: l.rewrite(ctx), Bare: true})
	if err != nil {
		return nil, err
	}
	for _, v := range tape.Graph().Inputs {
		if l.fixedBatch == 0 && len(v.Type.Shape) > 0 {
			v.Type.Shape[0] = ir.Dim{N: -1}
		}
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
	return tape.Model, nil
}

// targets returns the targets of a batch. t may be nil.
func (t *teacher) targets(ctx context.Context, targets []target, b *dataset.Batch, in map[string]*ir.Array, samples []int) ([]*ir.Array, error) {
	outputs, err := t.outputs(ctx, in, samples)
	if err != nil {
		return nil, err
	}
	out := make([]*ir.Array, len(targets))
	for i, target := range targets {
		if target.teacher != "" {
			out[i] = outputs[target.teacher]
			continue
		}
		if target.kind == nextToken {
			if out[i], err = nextTokens(b); err != nil {
				return nil, err
			}
			continue
		}
		classes := b.Classes()
		if classes == nil {
			return nil, errors.New("the labels are not classes; cross-entropy requires one integer per sample")
		}
		out[i] = ir.ArrayOf(classes, int64(len(classes)))
	}
	return out, nil
}

// outputs returns the teacher's values for samples, by name. t may be nil.
func (t *teacher) outputs(ctx context.Context, in map[string]*ir.Array, samples []int) (map[string]*ir.Array, error) {
	if t == nil {
		return nil, nil
	}
	if t.cache != nil && t.cache.has(samples) {
		return t.cache.read(t.values, samples)
	}
	out, err := t.session.Run(ctx, t.inputs(in), t.values)
	if err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	if t.cache != nil {
		err = t.cache.write(t.values, out, samples)
	}
	return out, err
}

// inputs returns the teacher's inputs.
func (t *teacher) inputs(in map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range t.session.Inputs() {
		if in[p.Name] != nil {
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

// bytes returns the memory of weights and arena for inputs of these types; the arena counts 0 if it cannot be planned.
func (t *teacher) bytes(specs map[string]ir.Spec) int64 {
	u, err := t.session.SerialUsage(specs)
	if err != nil {
		return t.held
	}
	return t.held + u.Plan.Size
}

func (t *teacher) close() error {
	if t == nil || t.session == nil {
		return nil
	}
	return errors.Join(t.session.Close(), t.cache.close())
}
