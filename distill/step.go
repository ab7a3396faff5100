package distill

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A step computes losses and gradients of a micro-batch, and updates weights or accumulated gradients.
type step struct {
	runnable
	tape          *grad.Tape
	profile       grad.Profile
	stored        conversion
	roles         map[string]grad.Role // of the results of nodes
	inputs        []string             // of the model
	feeds         map[string]*ir.Array // arrays of parameters and other inputs that persist between steps
	targets       []target
	losses        []string
	names         struct{ hyper, hyperNoDecay, counter, squareSum string }
	stats         map[string]*batchNormStat // by the outputs that are their new values
	maskedWeights map[string]*ir.Value      // weights times their masks, by the names of parameters
	grads         map[string]string         // names of the gradients of masked weights

	// multiply-adds of the forward pass and of recomputation; the backward pass takes about 2 forward passes
	forward, recomputed float64
}

// bindStats feeds the running statistics, and registers the outputs with their new values.
func (st *step) bindStats(params *parameters) {
	for _, r := range st.tape.Running {
		s := params.stat(r.Tensor)
		st.feeds[r.Value.Name] = s.array
		st.stats[r.New.Name] = s
	}
}

// counter returns the input with the numbers of the step and of its micro-batch, and adds it if there is none.
func (st *step) counter() *ir.Value {
	if st.names.counter == "" {
		st.names.counter = st.tape.Input("step", ir.Int64, 2).Name
	}
	return st.tape.Value(st.names.counter)
}

func (st *step) setLosses(losses []*ir.Value, targets []target) {
	st.targets = targets
	for _, v := range losses {
		st.losses = append(st.losses, v.Name)
	}
}

// outputs returns the losses, and the new values of running statistics.
func (st *step) outputs() (vs []*ir.Value) {
	for _, name := range st.losses {
		vs = append(vs, st.tape.Value(name))
	}
	for _, r := range st.tape.Running {
		vs = append(vs, r.New)
	}
	return vs
}

// hyperparameters are the inputs of a step that change between steps.
type hyperparameters struct {
	rate, decay float64
	step        int // from 1, of the schedule and of random numbers
	update      int // from 1, of the optimizer states, which are zero at the start of each training
	microBatch  int // of the step, from 0
	lossScale   float64
	shares      []float64 // of a micro-batch in the counts of the step, by target; nil for 1
}

// share is that of a target.
func (h hyperparameters) share(target int) float64 {
	if h.shares == nil {
		return 1
	}
	return h.shares[target]
}

// array returns the input of optimizer nodes, with this weight decay.
func (h hyperparameters) array(decay float64) *ir.Array {
	// The order of the engine's operators for updates: rate, number of the update, factor of the gradient, decay. The optimizer divides
	// by the loss scale, so that no pass over the gradients undoes it.
	return ir.ArrayOf([]float32{float32(h.rate), float32(h.update), float32(1 / h.lossScale), float32(decay)}, 4)
}

// arguments returns the inputs of a run.
func (st *step) arguments(b *dataset.Batch, targets []*ir.Array, h hyperparameters) map[string]*ir.Array {
	args := map[string]*ir.Array{}
	for name, a := range st.feeds {
		args[name] = a
	}
	for _, name := range st.inputs {
		args[name] = b.Inputs[name]
	}
	for i, t := range st.targets {
		args[t.input.Name] = targets[i]
		// Scale of the seeds of the backward pass and not of the reported loss. Gradients of float16 activations are thus
		// large enough not to vanish, and those of micro-batches add up to that of the step's mean.
		args[t.scale.Name] = ir.ArrayOf([]float32{float32(h.lossScale * h.share(i))})
		if t.keep != nil {
			args[t.keep.Name] = b.Attended
		}
	}
	if st.names.hyper != "" {
		args[st.names.hyper], args[st.names.hyperNoDecay] = h.array(h.decay), h.array(0)
	}
	if st.names.counter != "" {
		args[st.names.counter] = ir.ArrayOf([]int64{int64(h.step), int64(h.microBatch)}, 2)
	}
	return st.graphInputs(args)
}

// graphInputs returns the arguments that are inputs of the graph.
func (st *step) graphInputs(args map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range st.session.Inputs() {
		out[p.Name] = args[p.Name]
	}
	return out
}

// run computes one micro-batch. It returns the losses, each the mean over what it counts in the micro-batch.
func (st *step) run(ctx context.Context, b *dataset.Batch, targets []*ir.Array, h hyperparameters) (losses []float64,
	out map[string]*ir.Array, err error) {
	if out, err = st.session.Run(ctx, st.arguments(b, targets, h), nil); err != nil {
		return nil, nil, err
	}
	for name, s := range st.stats {
		// Into the array that the next run is fed, and that checkpoints and snapshots read.
		copy(s.array.Data, out[name].Data)
	}
	for _, name := range st.losses {
		losses = append(losses, float64(ir.View[float32](out[name])[0]))
	}
	return losses, out, nil
}

func (st *step) close() error {
	if st == nil {
		return nil
	}
	return st.runnable.close()
}
