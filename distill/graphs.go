package distill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A graphBuilder builds the graphs of training: steps, updates and the evaluator's.
type graphBuilder struct {
	*environment
	settings  *settings
	loader    *loader
	params    *parameters
	fakeQuant *fakeQuant // nil without QAT
	features  featureList
	terms     []term
	heads     []head       // that labels belong to; nil without labels
	measure   *measurement // nil without --metric
	nodes     int          // of the model
}

// tape builds the forward and backward pass of a step, which are equal in all layouts of a micro-batch.
func (b *graphBuilder) tape(ctx context.Context, microBatch int) (*step, error) {
	st := &step{feeds: map[string]*ir.Array{}, stats: map[string]*batchNormStat{}, inputs: b.loader.inputNames()}
	tape, err := grad.New(ctx, b.model, grad.Options{
		Inputs: b.loader.specs(microBatch), Train: b.params.trainable, Change: b.trainingChange(ctx, st),
		Append: b.features.ofStudent(), BatchStatistics: b.settings.BatchStatistics, Plain: b.plain,
	})
	if err != nil {
		return nil, err
	}
	st.tape = tape
	st.bindStats(b.params)
	// Nodes of the losses, which follow, are not results that a layout may recompute or store in another form.
	tape.Close()
	if err := b.backward(st, int64(microBatch)); err != nil {
		return nil, err
	}
	// After the backward pass, which makes the gradients. By name, as each layout has a clone of the graph.
	st.nameMaskedGradients()
	st.profile = tape.Activations().Profile()
	for _, w := range st.profile.Time {
		st.forward += w
	}
	if b.settings.Storage == "float16" {
		// Here and not for each layout: clones of the tape share the types.
		err = tape.InferResults(ctx)
	}
	return st, err
}

// step builds the graph of a step in a layout, from a tape of its micro-batch, which it does not change.
func (b *graphBuilder) step(ctx context.Context, from *step, p *layout) (_ *step, err error) {
	st := *from
	// A copy: a layout that is tried and dropped leaves no nodes in the tape of the next one.
	st.feeds, st.tape = maps.Clone(from.feeds), from.tape.Clone()
	st.model = st.tape.Model
	activations := st.tape.Activations()
	if st.stored, err = p.apply(ctx, activations, st.profile, b.folder, st.counter); err != nil {
		return nil, err
	}
	// Before weightUpdate: Roles takes every node that is neither forward nor a copy for one of the backward pass.
	st.roles = activations.Roles()
	st.recomputed = activations.Recomputed()
	outputs := st.outputs()
	st.tape.Graph().SetOutputs(append(outputs, b.weightUpdate(&st, p)...)...)
	return &st, nil
}

// backward adds losses and the backward pass.
func (b *graphBuilder) backward(st *step, samples int64) error {
	losses, seeds, targets, err := b.settings.addLosses(st.tape, b.terms, samples, b.loader.tokens)
	if err != nil {
		return err
	}
	st.setLosses(losses, targets)
	if err := st.tape.Backward(seeds); err != nil {
		return err
	}
	if !slices.ContainsFunc(st.tape.Params, func(w *grad.Param) bool { return w.Grad != nil }) {
		return errNoGradients
	}
	return nil
}

// errNoGradients is the error of a loss that no trained weight changes.
var errNoGradients = errors.New("the loss has no gradient by any of the trained weights, such as those before " +
	"QuantizeLinear: train the float model and quantize it afterwards")

// weightUpdate adds the optimizer's update of the weights, or the accumulation of gradients.
func (b *graphBuilder) weightUpdate(st *step, p *layout) []*ir.Value {
	for _, w := range st.tape.Params {
		st.feeds[w.Value.Name] = b.params.byName[w.Name].array
	}
	b.addScores(st)
	if p.accumulates() {
		b.accumulateGradients(st)
		return nil
	}
	u := newOptimizerGraph(b.settings, st.tape.Builder)
	st.names.hyper, st.names.hyperNoDecay = u.hyper.Name, u.hyperNoDecay.Name
	if b.settings.Clip > 0 {
		var gradients []*ir.Value
		for _, w := range st.tape.Params {
			if w.Grad != nil {
				gradients = append(gradients, w.Grad)
			}
		}
		u.clip(gradients)
	}
	for _, w := range st.tape.Params {
		if w.Grad != nil {
			u.update(b.params.byName[w.Name], w.Value, w.Grad)
		}
	}
	for name, a := range u.feeds {
		st.feeds[name] = a
	}
	total := u.squareSum()
	st.names.squareSum = total.Name
	return []*ir.Value{total}
}

func (b *graphBuilder) accumulateGradients(st *step) {
	for _, w := range st.tape.Params {
		if w.Grad == nil {
			continue
		}
		p := b.params.byName[w.Name]
		sum := st.tape.Input(w.Name+".sum", ir.Float, p.array.Shape...)
		st.feeds[sum.Name] = p.gradSum
		// In the step's graph, so that a gradient is added as soon as it is computed, and its memory is free for the next
		// one.
		st.tape.Own("AccumulateGrad", 1, []*ir.Value{sum, w.Grad})[0].Producer().Name = "accumulation for " + w.Name
	}
}

// trainingChange returns the changes of the forward graph for training: dropout, and those for evaluation.
func (b *graphBuilder) trainingChange(ctx context.Context, st *step) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		if b.settings.Dropout > 0 {
			// Before fake quantization: products must consume quantized values, not values with dropout after
			// quantization.
			st.names.counter = addDropout(tape, b.settings.Dropout, *b.settings.Seed)
		}
		return b.evaluationChange(ctx, st)(tape)
	}
}

// evaluationChange returns the deterministic changes of the forward graph: masks, fake quantization and rewritten batch
// sizes. It adds the arrays of new inputs to those that st feeds.
func (b *graphBuilder) evaluationChange(ctx context.Context, st *step) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		st.maskedWeights = insertMasks(tape, b.params, st.feeds)
		b.fakeQuant.insert(tape, b.params, st.feeds)
		return b.loader.rewrite(ctx)(tape)
	}
}

// updateQuantization observes how QAT quantizes the current weights and activations. A snapshot of the weights lets
// resumed training repeat it.
func (b *graphBuilder) updateQuantization(ctx context.Context) error {
	if b.fakeQuant == nil {
		return nil
	}
	if err := b.observeQuantization(ctx); err != nil {
		return fmt.Errorf("--qat: %w", err)
	}
	return b.params.writeTo(b.observedFile())
}

// repeatQuantization repeats the last observation before training was interrupted.
func (b *graphBuilder) repeatQuantization(ctx context.Context) error {
	if b.fakeQuant == nil {
		return nil
	}
	if err := b.params.readFrom(b.observedFile()); err != nil {
		return err
	}
	return b.updateQuantization(ctx)
}

// observedFile is the snapshot of the weights of the last observation for QAT.
func (b *graphBuilder) observedFile() string { return filepath.Join(b.folder, "observed") }

// quantizeWeights computes the dequantized values of the current weights with QAT.
func (b *graphBuilder) quantizeWeights(ctx context.Context) error {
	return b.fakeQuant.quantizeWeights(ctx, b.environment, b.params.weights)
}

// observeQuantization runs the quantization step of QAT on the model with its current weights. Which entries of
// codebooks the elements have is observed once.
func (b *graphBuilder) observeQuantization(ctx context.Context) error {
	// A second observation would run k-means on the trained weights, and assign elements to other entries.
	if b.fakeQuant.shared {
		return nil
	}
	m, params, err := b.modelCopy(ctx)
	if err != nil {
		return err
	}
	return b.fakeQuant.observe(ctx, b.environment, m, params)
}

// modelCopy returns the main graph of the model with the current weights, and the parameters by their names in it.
func (b *graphBuilder) modelCopy(ctx context.Context) (*ir.Model, map[string]*parameter, error) {
	tape, err := grad.New(ctx, b.model, grad.Options{Inputs: b.loader.smallest(), Train: none, Bare: true})
	if err != nil {
		return nil, nil, err
	}
	m := tape.Model
	// The forms that a quantization step writes depend on the opset and IR version of the model: not on those that
	// package grad adds for its own nodes.
	m.Opsets, m.IRVersion = slices.Clone(b.model.Opsets), b.model.IRVersion
	types := map[string]*ir.Type{}
	for v := range b.model.Values() {
		types[v.Name] = v.Type
	}
	for v := range m.Values() {
		// Dynamic axes as declared, where grad has the sizes of the batch.
		v.Type = types[v.Name]
	}
	params := map[string]*parameter{}
	for _, v := range m.Graph.Consts() {
		// Not a copy of the data: fake quantization computes from the arrays that training updates, without another
		// observation.
		if i := slices.IndexFunc(b.params.weights, func(p *parameter) bool { return p.tensor == v.Const }); i >= 0 {
			params[v.Name] = b.params.weights[i]
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(b.params.weights[i].array.Data)})
		} else if s := b.params.stat(v.Const); s != nil {
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(s.array.Data)})
		}
	}
	return m, params, nil
}
