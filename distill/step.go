package distill

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A step computes losses and gradients of a part of a batch, and changes weights or the sums of their
// gradients.
type step struct {
	session *engine.Interpreter
	tape    *grad.Tape
	profile grad.Profile
	inputs  []string             // of the model
	feeds   map[string]*ir.Array // variables by the names of inputs
	targets []target
	losses  []string
	names   struct{ scale, hyper, frozen, counter, total string }
	moments map[string]*moment // by the outputs that are their new values
	arena   int64
}

// graph makes the graph of a step for so many samples, without opening it.
func (t *Trainer) graph(ctx context.Context, p *layout) (*step, error) {
	st := &step{feeds: map[string]*ir.Array{}, moments: map[string]*moment{}}
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(p.part()), Train: t.trained, Change: t.change(ctx, st), BatchStatistics: t.statistics})
	if err != nil {
		return nil, err
	}
	st.tape = tape
	st.follow(tape, t)
	for _, in := range t.ports {
		st.inputs = append(st.inputs, in.Name)
	}
	tape.Close()
	outputs, err := t.backward(st)
	if err != nil {
		return nil, err
	}
	for _, r := range tape.Running {
		outputs = append(outputs, r.New)
	}
	st.profile = tape.Profile()
	if err := p.apply(ctx, tape, t.folder); err != nil {
		return nil, err
	}
	outputs = append(outputs, t.updates(st, p)...)
	tape.Graph().SetOutputs(outputs...)
	return st, nil
}

// follow feeds the step with running statistics, and takes note of what becomes of them.
func (st *step) follow(tape *grad.Tape, t *Trainer) {
	for _, r := range tape.Running {
		m := t.moment(r.Tensor)
		st.feeds[r.Value.Name] = m.array
		st.moments[r.New.Name] = m
	}
}

// backward adds losses and gradients. It returns the losses.
func (t *Trainer) backward(st *step) ([]*ir.Value, error) {
	scale := st.tape.Input("scale", ir.Float)
	st.names.scale = scale.Name
	losses, seeds, targets, err := t.settings.add(st.tape, t.terms, scale)
	if err != nil {
		return nil, err
	}
	st.targets = targets
	for _, v := range losses {
		st.losses = append(st.losses, v.Name)
	}
	return losses, st.tape.Backward(seeds)
}

// updates adds what is done with gradients.
func (t *Trainer) updates(st *step, p *layout) []*ir.Value {
	if p.apart() {
		return t.sums(st)
	}
	u := newUpdating(&t.settings, st.tape)
	st.names.hyper, st.names.frozen = u.hypers()
	if t.clip > 0 {
		var gradients []*ir.Value
		for _, w := range st.tape.Params {
			if w.Grad != nil {
				gradients = append(gradients, w.Grad)
			}
		}
		u.clipTo(gradients)
	}
	for _, w := range st.tape.Params {
		v := t.vars[w.Name]
		st.feeds[w.Value.Name] = v.array
		if w.Grad != nil {
			u.add(v, w.Value, w.Grad)
		}
	}
	for name, a := range u.feeds {
		st.feeds[name] = a
	}
	total := u.total()
	st.names.total = total.Name
	return []*ir.Value{total}
}

// sums adds gradients to their sums.
func (t *Trainer) sums(st *step) []*ir.Value {
	for _, w := range st.tape.Params {
		v := t.vars[w.Name]
		st.feeds[w.Value.Name] = v.array
		if w.Grad == nil {
			continue
		}
		sum := st.tape.Input(w.Name+".sum", ir.Float, v.array.Shape...)
		st.feeds[sum.Name] = v.buffer
		st.tape.Own("AccumulateGrad", 1, []*ir.Value{sum, w.Grad})
	}
	return nil
}

// open makes the step ready to run.
func (st *step) open(ctx context.Context, workers int, seed uint64) (err error) {
	st.session, err = engine.Open(ctx, st.tape.Model, engine.Options{Workers: workers, Seed: seed})
	return err
}

// plan is the bytes of the arena that a run takes.
func (st *step) plan(ctx context.Context, workers int) (int64, error) {
	s, err := engine.Open(ctx, st.tape.Model, engine.Options{Workers: workers, PlanOnly: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return usage(s)
}

// usage is the bytes that a run of s takes.
func usage(s *engine.Interpreter) (int64, error) {
	specs := map[string]ir.Spec{}
	for _, p := range s.Inputs() {
		spec := ir.Spec{DType: p.Type.Elem}
		for _, d := range p.Type.Shape {
			spec.Shape = append(spec.Shape, d.N)
		}
		specs[p.Name] = spec
	}
	u, err := s.Usage(specs)
	if err != nil {
		return 0, err
	}
	if len(u.Dynamic) > 0 {
		return 0, fmt.Errorf("node %q: the output shape depends on data, so its memory cannot be planned", u.Dynamic[0])
	}
	return u.Plan.Size, nil
}

// numbers are what a step is run with.
type numbers struct {
	rate, decay float64
	step        int     // from 1 on
	scale       float64 // of the loss
	parts       int
}

// hyper are the inputs of updates.
func (n numbers) hyper(decay float64) *ir.Array {
	return ir.ArrayOf([]float32{float32(n.rate), float32(n.step), float32(1 / n.scale), float32(decay)}, 4)
}

// arguments are the inputs of a run.
func (st *step) arguments(in map[string]*ir.Array, targets []*ir.Array, n numbers) map[string]*ir.Array {
	args := map[string]*ir.Array{
		st.names.scale: ir.ArrayOf([]float32{float32(n.scale / float64(n.parts))}),
	}
	for name, a := range st.feeds {
		args[name] = a
	}
	for _, name := range st.inputs {
		args[name] = in[name]
	}
	for i, t := range st.targets {
		args[t.input.Name] = targets[i]
	}
	if st.names.hyper != "" {
		args[st.names.hyper], args[st.names.frozen] = n.hyper(n.decay), n.hyper(0)
	}
	if st.names.counter != "" {
		args[st.names.counter] = ir.ArrayOf([]int64{int64(n.step)}, 1)
	}
	return st.used(args)
}

// run computes one part of a batch. It returns the sum of the losses.
func (st *step) run(ctx context.Context, in map[string]*ir.Array, targets []*ir.Array, n numbers) (loss float64, out map[string]*ir.Array, err error) {
	if out, err = st.session.Run(ctx, st.arguments(in, targets, n), nil); err != nil {
		return 0, nil, err
	}
	for name, m := range st.moments {
		copy(m.array.Data, out[name].Data)
	}
	for _, name := range st.losses {
		loss += float64(ir.View[float32](out[name])[0])
	}
	return loss, out, nil
}

// used are the arguments that the graph has inputs for.
func (st *step) used(args map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range st.session.Inputs() {
		out[p.Name] = args[p.Name]
	}
	return out
}

func (st *step) close() error {
	if st == nil || st.session == nil {
		return nil
	}
	return st.session.Close()
}
