package distill

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A teacher says what a student is to be like.
type teacher struct {
	session *engine.Interpreter
	values  []string // of its graph, that terms ask for
	cache   *cache   // nil if what it says is not kept
}

// newTeacher opens the teacher for the terms of t; nil if none asks for one.
func newTeacher(ctx context.Context, m *ir.Model, t *Trainer) (*teacher, error) {
	var values []string
	for _, term := range t.terms {
		if term.teacher != "" && !slices.Contains(values, term.teacher) {
			values = append(values, term.teacher)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	open, err := t.openTeacher(ctx, m, values)
	if err != nil {
		return nil, err
	}
	s, err := engine.Open(ctx, open, engine.Options{Workers: t.workers})
	if err != nil {
		return nil, err
	}
	out := &teacher{session: s, values: values}
	if t.settings.cache && t.settings.augment == "" {
		out.cache = &cache{folder: t.folder, known: map[int]bool{}}
	}
	return out, nil
}

// openTeacher is m with these values as its outputs, for any number of samples where the student takes any.
func (t *Trainer) openTeacher(ctx context.Context, m *ir.Model, values []string) (*ir.Model, error) {
	specs := map[string]ir.Spec{}
	inputs := dataset.Inputs(m.Graph)
	some := 2 // samples
	if t.fixed > 0 {
		some = t.fixed
	}
	for _, in := range inputs {
		spec, ok := t.specs(some)[in.Name]
		if !ok && len(inputs) == 1 && len(t.ports) == 1 {
			spec, ok = t.specs(some)[t.ports[0].Name], true // other names, one input
		}
		if !ok {
			return nil, fmt.Errorf("its input %q is not an input of the student", in.Name)
		}
		specs[in.Name] = spec
	}
	tape, err := grad.New(ctx, m, grad.Options{Inputs: specs, Train: none, Change: t.opening(ctx), Bare: true})
	if err != nil {
		return nil, err
	}
	for _, v := range tape.Graph().Inputs {
		if t.fixed == 0 && len(v.Type.Shape) > 0 {
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

func (t *teacher) close() error {
	if t == nil {
		return nil
	}
	return t.session.Close()
}

// says is what the teacher makes of samples, by the names of its values.
func (t *teacher) says(ctx context.Context, in map[string]*ir.Array, samples []int) (map[string]*ir.Array, error) {
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

// inputs are those that the teacher takes.
func (t *teacher) inputs(in map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range t.session.Inputs() {
		if in[p.Name] != nil {
			out[p.Name] = in[p.Name]
		}
	}
	if len(out) == 0 && len(in) == 1 && len(t.session.Inputs()) == 1 { // other names, one input
		for _, a := range in {
			out[t.session.Inputs()[0].Name] = a
		}
	}
	return out
}

// A cache keeps what the teacher said of each sample in files, one for each value.
type cache struct {
	folder string
	files  []*os.File
	shapes [][]int64 // of one sample's value
	known  map[int]bool
}

func (c *cache) has(samples []int) bool {
	return !slices.ContainsFunc(samples, func(i int) bool { return !c.known[i] })
}

// write keeps the rows of values. Values whose first axis is not the samples' are not kept.
func (c *cache) write(values []string, out map[string]*ir.Array, samples []int) error {
	for _, name := range values {
		if a := out[name]; len(a.Shape) == 0 || a.Shape[0] != int64(len(samples)) || a.DType != ir.Float {
			return nil
		}
	}
	for k, name := range values {
		if k == len(c.files) {
			f, err := os.CreateTemp(c.folder, "teacher-")
			if err != nil {
				return err
			}
			c.files, c.shapes = append(c.files, f), append(c.shapes, out[name].Shape[1:])
		}
		row := int64(len(out[name].Data) / len(samples))
		for i, s := range samples {
			if _, err := c.files[k].WriteAt(out[name].Data[int64(i)*row:][:row], int64(s)*row); err != nil {
				return err
			}
		}
	}
	for _, s := range samples {
		c.known[s] = true
	}
	return nil
}

func (c *cache) read(values []string, samples []int) (map[string]*ir.Array, error) {
	out := map[string]*ir.Array{}
	for k, name := range values {
		a := ir.NewArray(ir.Float, append([]int64{int64(len(samples))}, c.shapes[k]...)...)
		row := int64(len(a.Data) / len(samples))
		for i, s := range samples {
			if _, err := c.files[k].ReadAt(a.Data[int64(i)*row:][:row], int64(s)*row); err != nil {
				return nil, err
			}
		}
		out[name] = a
	}
	return out, nil
}
