package distill

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A step computes losses and gradients of a micro-batch, and updates weights or accumulated gradients.
type step struct {
	session *engine.Interpreter
	tape    *grad.Tape
	profile grad.Profile
	inputs  []string             // of the model
	feeds   map[string]*ir.Array // arrays of parameters and other inputs that persist between steps
	targets []target
	losses  []string
	names   struct{ scale, hyper, hyperNoDecay, counter, squareSum string }
	stats   map[string]*batchNormStat // by the outputs that are their new values
	arena   int64
}

// bindStats feeds the running statistics, and registers the outputs with their new values.
func (st *step) bindStats(params *parameters) {
	for _, r := range st.tape.Running {
		s := params.stat(r.Tensor)
		st.feeds[r.Value.Name] = s.array
		st.stats[r.New.Name] = s
	}
}

func (st *step) setLosses(losses []*ir.Value, targets []target) {
	st.targets = targets
	for _, v := range losses {
		st.losses = append(st.losses, v.Name)
	}
}

// open opens a session for the step.
func (st *step) open(ctx context.Context, o engine.Options) (err error) {
	if st.session, err = engine.Open(ctx, st.tape.Model, o); err != nil {
		return err
	}
	st.arena, err = arenaOf(st.session)
	return err
}

// plan returns the size of the step's arena in bytes.
func (st *step) plan(ctx context.Context, o engine.Options) (int64, error) {
	o.PlanOnly = true
	s, err := engine.Open(ctx, st.tape.Model, o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return arenaOf(s)
}

// arenaOf returns the size of a session's arena in bytes, with one worker thread: layouts, which affect results, and reports are chosen by it.
func arenaOf(s *engine.Interpreter) (int64, error) {
	specs := map[string]ir.Spec{}
	for _, p := range s.Inputs() {
		spec := ir.Spec{DType: p.Type.Elem}
		for _, d := range p.Type.Shape {
			spec.Shape = append(spec.Shape, d.N)
		}
		specs[p.Name] = spec
	}
	u, err := s.SerialUsage(specs)
	if err != nil {
		return 0, err
	}
	if len(u.Dynamic) > 0 {
		return 0, fmt.Errorf("node %q: the output shape depends on data, so its memory cannot be planned", u.Dynamic[0])
	}
	return u.Plan.Size, nil
}

// hyperparameters are the inputs of a step that change between steps.
type hyperparameters struct {
	rate, decay  float64
	step         int // from 1
	lossScale    float64
	microBatches int
}

// array returns the input of optimizer nodes, with this weight decay.
func (h hyperparameters) array(decay float64) *ir.Array {
	return ir.ArrayOf([]float32{float32(h.rate), float32(h.step), float32(1 / h.lossScale), float32(decay)}, 4)
}

// arguments returns the inputs of a run.
func (st *step) arguments(in map[string]*ir.Array, targets []*ir.Array, h hyperparameters) map[string]*ir.Array {
	args := map[string]*ir.Array{
		st.names.scale: ir.ArrayOf([]float32{float32(h.lossScale / float64(h.microBatches))}),
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
		args[st.names.hyper], args[st.names.hyperNoDecay] = h.array(h.decay), h.array(0)
	}
	if st.names.counter != "" {
		args[st.names.counter] = ir.ArrayOf([]int64{int64(h.step)}, 1)
	}
	return st.used(args)
}

// used returns the arguments that are inputs of the graph.
func (st *step) used(args map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range st.session.Inputs() {
		out[p.Name] = args[p.Name]
	}
	return out
}

// run computes one micro-batch. It returns the sum of the losses.
func (st *step) run(ctx context.Context, in map[string]*ir.Array, targets []*ir.Array, h hyperparameters) (loss float64, out map[string]*ir.Array, err error) {
	if out, err = st.session.Run(ctx, st.arguments(in, targets, h), nil); err != nil {
		return 0, nil, err
	}
	for name, s := range st.stats {
		copy(s.array.Data, out[name].Data)
	}
	for _, name := range st.losses {
		loss += float64(ir.View[float32](out[name])[0])
	}
	return loss, out, nil
}

func (st *step) close() error {
	if st == nil || st.session == nil {
		return nil
	}
	return st.session.Close()
}
