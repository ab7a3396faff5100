package distill

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A rounding is what a step that follows would make of the model as it is: training computes with the numbers that would stand for
// weights and activations, and gradients pass straight through (Jacob et al. 2018, arXiv:1712.05877, section 3). The step itself says what
// those numbers are, on a copy of the model, so that they are the ones that it stores in the end.
type rounding struct {
	step    pass.Options
	memory  int64               // bytes that a run of the model may take; 0 for no bound
	dry     bool                // nothing will be trained
	weights map[string]*rounded // by the names of variables
	codes   map[edge]*codes     // of activations
	dynamic bool                // activations have the codes of their own range in each run
}

// A rounded is the numbers that stand for a weight.
type rounded struct {
	of     *ir.Tensor // how they follow from the weight as it is
	array  *ir.Array
	source *variable
}

// newRounding is nil if training is to know of no rounding.
func (s *settings) newRounding(c *pass.Context) (*rounding, error) {
	if s.qat == "" {
		return nil, nil
	}
	for _, step := range c.Later {
		if step.Method().Name != s.qat || step.Method().Stage != pass.Quantize {
			continue
		}
		if slices.ContainsFunc(pass.Values(step), func(o pass.Option) bool { return o.Name == "algo" && (o.Value == "gptq" || o.Value == "awq") }) {
			return nil, pass.OptionErrorf("--qat %s: gptq and awq are not supported, since they run the calibration data for every change of the weights; use --algo rtn or hqq", s.qat)
		}
		return &rounding{step: step, memory: c.Memory, dry: c.DryRun, weights: map[string]*rounded{}, codes: map[edge]*codes{}}, nil
	}
	return nil, pass.OptionErrorf("--qat %s: no quantization step of that name follows this step; add it, with its options", s.qat)
}

// rehearse asks the step what it makes of the model as it is.
func (t *Trainer) rehearse(ctx context.Context) error {
	if t.rounding == nil {
		return nil
	}
	m, now, err := t.copied(ctx)
	if err != nil {
		return err
	}
	if err := t.rounding.rehearse(ctx, t, m, now); err != nil {
		return fmt.Errorf("--qat: %w", err)
	}
	return t.remember(t.rehearsedFile())
}

// rehearse runs the step on a copy of t's model, with the weights of these names as they are now.
func (r *rounding) rehearse(ctx context.Context, t *Trainer, m *ir.Model, now map[string]*variable) (err error) {
	e := ir.NewEval(t.folder)
	defer func() { err = errors.Join(err, e.Close()) }()
	c := &pass.Context{Context: ctx, Model: m, Source: t.model, Eval: e, Workers: t.workers, Memory: r.memory, Precheck: true, DryRun: r.dry}
	rows, err := pass.Run(c, []pass.Options{r.step})
	if err != nil {
		return err
	}
	if err := r.rows(rows, now); err != nil {
		return err
	}
	return r.edges(c)
}

func (t *Trainer) rehearsedFile() string { return filepath.Join(t.folder, "rehearsed") }

// rehearseAgain asks the step what it made of the model when it was asked last before training was interrupted.
func (t *Trainer) rehearseAgain(ctx context.Context) error {
	if t.rounding == nil {
		return nil
	}
	if err := t.recall(t.rehearsedFile()); err != nil {
		return err
	}
	return t.rehearse(ctx)
}

// copied is the main graph of the model with the weights as they are, and those by name.
func (t *Trainer) copied(ctx context.Context) (*ir.Model, map[string]*variable, error) {
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(max(1, t.fixed)), Train: none, Bare: true})
	if err != nil {
		return nil, nil, err
	}
	m := tape.Model
	m.Opsets, m.IRVersion = slices.Clone(t.model.Opsets), t.model.IRVersion
	types := map[string]*ir.Type{}
	for v := range t.model.Values() {
		types[v.Name] = v.Type
	}
	for v := range m.Values() {
		v.Type = types[v.Name]
	}
	now := map[string]*variable{}
	for _, v := range m.Graph.Consts() {
		if i := slices.IndexFunc(t.order, func(w *variable) bool { return w.tensor == v.Const }); i >= 0 {
			now[v.Name] = t.order[i]
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(t.order[i].array.Data)})
		} else if moment := t.moment(v.Const); moment != nil {
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(moment.array.Data)})
		}
	}
	return m, now, nil
}

// rows takes note of what becomes of the weights. What was rounded before and is no more stays as it is.
func (r *rounding) rows(rows []pass.Row, now map[string]*variable) error {
	for _, w := range r.weights {
		w.of = nil
	}
	for _, row := range rows {
		v := now[row.Tensor]
		if v == nil || row.Scope != "" || row.Status != pass.Changed {
			continue
		}
		of := restored(row)
		// Equal weights share a payload: each has its own again once they differ, when the step is asked next.
		if of == nil || row.SharedWith == "" && !follows(of, v) || !holds(row.Before, v) {
			return fmt.Errorf("%s changes tensor %q by more than quantization, which QAT does not support; disable bias correction and smoothing, and run fold-batchnorm first", row.Method, row.Tensor)
		}
		if r.weights[v.name] == nil {
			r.weights[v.name] = &rounded{array: newLike(v.array), source: v}
		}
		r.weights[v.name].of = of
	}
	return nil
}

// restored is the float tensor that row's parts stand for, nil if the row does not say.
func restored(row pass.Row) *ir.Tensor {
	if row.Restore == nil {
		return nil
	}
	var parts []*ir.Tensor
	for _, p := range row.After {
		parts = append(parts, p.Tensor)
	}
	return row.Restore(parts)
}

// holds reports whether t is v's array.
func holds(t *ir.Tensor, v *variable) bool {
	data, ok := t.Source.(ir.Mem)
	return ok && len(data) > 0 && &data[0] == &v.array.Data[0]
}

// follows reports whether t is computed of v's array.
func follows(t *ir.Tensor, v *variable) bool {
	made, ok := t.Source.(ir.Output)
	return holds(t, v) || ok && slices.ContainsFunc(made.Of.In, func(in *ir.Tensor) bool { return follows(in, v) })
}

// round computes what stands for the weights as they are.
func (t *Trainer) round(ctx context.Context) (err error) {
	if t.rounding == nil {
		return nil
	}
	e := ir.NewEval(t.folder)
	defer func() { err = errors.Join(err, e.Close()) }()
	var list []*rounded
	for _, v := range t.order {
		if w := t.rounding.weights[v.name]; w != nil {
			list = append(list, w)
		}
	}
	return (&pass.Context{Context: ctx, Workers: t.workers}).Parallel(len(list), func(ctx context.Context, i int) error { return list[i].round(ctx, e) })
}

func (w *rounded) round(ctx context.Context, e *ir.Eval) error {
	if w.of == nil {
		copy(w.array.Data, w.source.array.Data)
		return nil
	}
	r, err := e.Open(ctx, w.of)
	if err == nil {
		err = ir.ReadFull(r, w.array.Data, 0)
	}
	if err != nil { // not wrapped: what is unfit now was not when training began
		return fmt.Errorf("fake quantization of weights: %v", err)
	}
	return nil
}

// options are those of the step that numbers follow from.
func (r *rounding) options() []pass.Option {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(pass.Values(r.step), func(o pass.Option) bool { return o.Name == "data" })
}

// bytes is what the rounded weights take.
func (r *rounding) bytes() (n int64) {
	if r == nil {
		return 0
	}
	for _, w := range r.weights {
		n += w.array.Bytes()
	}
	return n
}
