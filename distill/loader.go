package distill

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An environment is the model and the resources of all parts of a training run.
type environment struct {
	model    *ir.Model
	eval     *ir.Eval
	workers  int
	limits   memory.Limits // of each session
	arena    engine.Arena  // of all sessions, which run one after the other
	folder   string        // for temporary files
	planOnly bool          // nothing is trained: sessions do not read weights, and data are optional
	plain    bool          // without operator fusion
}

// session are the options of a session.
func (env *environment) session() engine.Options {
	return engine.Options{Workers: env.workers, Limits: env.limits, Arena: &env.arena, PlanOnly: env.planOnly,
		NoFusion: env.plain}
}

// A loader provides the training and validation samples, and the shapes of the model's inputs.
type loader struct {
	*environment
	settings *settings
	params   *parameters

	set        *dataset.Set // nil for a plan or a trial without data
	inputs     []dataset.Input
	sample     map[string]ir.Spec // types of the model's inputs for one sample
	tokens     int64              // of a sample, if the data has a mask of padding; else 0
	training   []int              // samples
	validation []int
	fixedBatch int  // batch size that the model requires; 0 for any
	rewrites   bool // constant batch sizes in Reshape are rewritten
}

// open opens the data. Most models exported with a fixed batch size run with others, too; for those that do not, a
// batch is computed in micro-batches of the fixed size.
func (l *loader) open(ctx context.Context) error {
	if err := l.checkBatchAxis(); err != nil {
		return err
	}
	if err := l.openWith(ctx, withDynamicBatch(dataset.Inputs(l.model.Graph))); err != nil {
		return err
	}
	// Before the batch size is chosen, as a fixed one is the unit of it.
	if dynamic, err := l.supportsDynamicBatch(ctx); err != nil {
		return err
	} else if dynamic {
		return l.chooseBatch(l.settings.Accumulate)
	}
	if err := l.close(); err != nil {
		return err
	}
	inputs := dataset.Inputs(l.model.Graph)
	l.fixedBatch = fixedBatch(inputs)
	if err := l.chooseBatch(l.fixedBatch); err != nil {
		return err
	}
	if l.settings.Batch%l.fixedBatch != 0 {
		return pass.OptionErrorf("the model requires batches of exactly %d samples; use --batch %d or a multiple",
			l.fixedBatch, l.fixedBatch)
	}
	// Batches of more samples are micro-batches of the only size that the model computes.
	l.settings.Accumulate = l.settings.Batch / l.fixedBatch
	return l.openWith(ctx, inputs)
}

// chooseBatch sets the batch size, unless it is given: a multiple of unit.
func (l *loader) chooseBatch(unit int) error {
	l.settings.chooseBatch(len(l.training), unit)
	if len(l.training) < l.settings.Batch {
		return fmt.Errorf("%d training samples are fewer than one batch of %d; use a smaller --batch", len(l.training),
			l.settings.Batch)
	}
	return nil
}

// openWith opens the data for these inputs, or uses the types that the model declares: plans and trials require no
// data.
func (l *loader) openWith(ctx context.Context, inputs []dataset.Input) (err error) {
	l.inputs = inputs
	source := dataset.Source{Samples: l.settings.Samples}
	if l.settings.Path == "" {
		return l.describe(&source)
	}
	workers := l.workers
	if l.settings.MemoryBudget > 0 {
		workers = serial // fewer batches in memory: those of the plan
	}
	if l.set, err = source.Open(l.model, inputs, workers); err != nil {
		return err
	}
	return l.split(ctx)
}

// describe uses the declared types of the inputs, and enough samples for training and for validation.
func (l *loader) describe(source *dataset.Source) error {
	o, err := source.Options(serial)
	if err != nil {
		return err
	}
	specs, err := dataset.Specs(l.inputs, dataset.Random{Dims: o.Dims})
	if err != nil {
		return err
	}
	l.sample = map[string]ir.Spec{}
	for i, s := range specs {
		if err := s.Valid(); err != nil {
			return fmt.Errorf("input %q: %w", l.inputs[i].Name, err)
		}
		l.sample[l.inputs[i].Name] = s
	}
	// So many that the number of samples does not reduce the batch size.
	n := stepsPerEpoch * max(l.settings.Batch, defaultBatch)
	l.training = make([]int, n)
	if *l.settings.Validate > 0 {
		l.validation = make([]int, n)
	}
	return nil
}

// fixedBatch returns the size of the first axis of the inputs.
func fixedBatch(inputs []dataset.Input) int {
	for _, in := range inputs {
		if in.Type != nil && len(in.Type.Shape) > 0 && in.Type.Shape[0].N > 1 {
			return int(in.Type.Shape[0].N)
		}
	}
	return 1
}

// checkBatchAxis reports a --dim of the axis that is the batch, which has the size of --batch.
func (l *loader) checkBatchAxis() error {
	for _, in := range dataset.Inputs(l.model.Graph) {
		if in.Type == nil || len(in.Type.Shape) == 0 || in.Type.Shape[0].Known() {
			continue
		}
		for _, dim := range l.settings.Dims {
			if name, _, _ := strings.Cut(dim, "="); name == in.Axis(0) {
				return pass.OptionErrorf("--dim %s: the axis is the batch of input %q; set its size by --batch", dim, in.Name)
			}
		}
	}
	return nil
}

// withDynamicBatch returns inputs with a dynamic first axis.
func withDynamicBatch(inputs []dataset.Input) []dataset.Input {
	out := slices.Clone(inputs)
	for i, in := range out {
		if in.Type == nil || len(in.Type.Shape) == 0 || !in.Type.Shape[0].Known() {
			continue
		}
		typ := *in.Type
		typ.Shape = slices.Clone(typ.Shape)
		typ.Shape[0] = ir.Dim{N: -1}
		out[i].Type = &typ
	}
	return out
}

// split holds out the validation set and reads the types of the inputs from the first training sample.
func (l *loader) split(ctx context.Context) error {
	l.training, l.validation = splitSamples(l.set.Len(), *l.settings.Validate, *l.settings.Seed)
	// Of a fixed size only whole batches run.
	l.validation = l.validation[:len(l.validation)/max(1, l.fixedBatch)*max(1, l.fixedBatch)]
	if len(l.training) == 0 {
		return errors.New("no training samples")
	}
	for b, err := range l.set.Batches(ctx, dataset.Order{Size: 1, Index: l.training[:max(1, l.fixedBatch)]}) {
		if err != nil {
			return err
		}
		l.sample = map[string]ir.Spec{}
		for name, a := range b.Inputs {
			l.sample[name] = a.Spec()
		}
		if b.Attended != nil {
			l.tokens = b.Attended.Shape[1]
		}
	}
	return nil
}

// splitSamples chooses a random fraction of n samples for validation.
func splitSamples(n int, fraction float64, seed uint64) (training, validation []int) {
	all := dataset.Shuffled(n, seed^splitStream)
	k := int(math.Round(fraction * float64(n)))
	if k == 0 && fraction > 0 && n > 1 {
		k = 1
	}
	training, validation = slices.Clone(all[k:]), slices.Clone(all[:k])
	// In the order of the data: each epoch shuffles them again, by another stream.
	slices.Sort(training)
	slices.Sort(validation)
	return training, validation
}

// splitStream makes the random stream of the split differ from that of the sample order.
const splitStream = 0x73706c6974

// batches iterates over batches of the given samples, each valid until the next one. The loaders change them; change
// may be nil.
func (l *loader) batches(ctx context.Context, samples []int, size int,
	change func(*dataset.Batch) error) iter.Seq2[*dataset.Batch, error] {
	return l.set.Batches(ctx, dataset.Order{Size: size, Index: samples, Change: change, Reuse: true})
}

// held returns the memory of the current batch of n samples and of those that are read ahead, with a number of worker
// threads.
func (l *loader) held(n, workers int) int64 {
	return dataset.Options{Prefetch: l.settings.Prefetch}.Held(l.batchBytes(n), workers)
}

// batchBytes bounds the memory of a batch of n samples.
func (l *loader) batchBytes(n int) int64 {
	if l.set != nil {
		return l.set.BatchBytes(n)
	}
	bytes := int64(0)
	if l.hasClasses() {
		bytes = int64(n) * ir.Int64.Bits() / 8
	}
	for _, s := range l.specs(n) {
		bytes += s.Bytes()
	}
	return bytes
}

// transient bounds the memory that is allocated anew for each batch of n samples.
func (l *loader) transient(n int) int64 {
	if l.set == nil {
		return 0
	}
	return l.set.Transient(n)
}

// resident is the memory of data that are not read batch by batch.
func (l *loader) resident() int64 {
	if l.set == nil {
		return 0
	}
	return l.set.Resident()
}

// hasClasses reports whether samples have classes as labels that an output may have. Without data they have if the
// output can be class scores.
func (l *loader) hasClasses() bool {
	if l.set == nil {
		y := firstFloats(l.model.Graph)
		return l.settings.Loss == "cross-entropy" || l.settings.alpha > 0 || isScores(y) &&
			(y.Type == nil || len(y.Type.Shape) == 2)
	}
	shape, ok := l.set.ClassLabels()
	if !ok || elems(shape) == 1 || l.settings.Loss == "cross-entropy" {
		return ok
	}
	// Integers that fit no output are not its classes.
	hs, _ := l.settings.heads(l.model.Graph, shape)
	return len(hs) > 0
}

// heads returns the outputs that labels belong to. Without data they are those of --scores, or the first one of floats,
// and labels have the shape that fits it.
func (l *loader) heads() (hs []head, err error) {
	g := l.model.Graph
	if l.set != nil {
		shape, _ := l.set.ClassLabels()
		return l.settings.heads(g, shape)
	}
	named := l.settings.Scores
	if len(named) == 0 {
		h, _ := headOf(firstFloats(g), nil, -1)
		return []head{h}, nil
	}
	for _, name := range named {
		y, err := l.settings.output(g, name)
		if err != nil {
			return nil, err
		}
		h, ok := headOf(y, fitting(y), -1)
		if !ok {
			return nil, pass.OptionErrorf("--scores %s: the output has no score of each class: the outputs are %s", name,
				typeList(g.Outputs...))
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// firstFloats is the first output of floats, or of an unknown type, that is no cache of the next run; the first output
// if there is none.
func firstFloats(g *ir.Graph) *ir.Value {
	for _, y := range uncached(g) {
		if y.Type == nil || y.Type.Elem == ir.Undefined || y.Type.Elem.IsFloat() {
			return y
		}
	}
	return g.Outputs[0]
}

// fitting is a shape of labels of a sample for scores of tokens by classes, or of classes by the places of an image.
func fitting(y *ir.Value) (labels []int64) {
	if y.Type == nil || len(y.Type.Shape) < 3 {
		return nil
	}
	dims := y.Type.Shape[2:]
	if len(dims) == 1 {
		dims = y.Type.Shape[1:2]
	}
	for _, d := range dims {
		labels = append(labels, max(d.N, 2)) // a dynamic axis has any size
	}
	return labels
}

// specs returns the types of the model's inputs for n samples.
func (l *loader) specs(n int) map[string]ir.Spec {
	out := map[string]ir.Spec{}
	for name, s := range l.sample {
		s.Shape = slices.Clone(s.Shape)
		if len(s.Shape) > 0 {
			s.Shape[0] = s.Shape[0] * int64(n) / int64(max(1, l.fixedBatch))
		}
		out[name] = s
	}
	return out
}

// smallest returns the types of the inputs for the smallest batch.
func (l *loader) smallest() map[string]ir.Spec { return l.specs(max(1, l.fixedBatch)) }

func (l *loader) inputNames() []string {
	var names []string
	for _, in := range l.inputs {
		names = append(names, in.Name)
	}
	return names
}

// recordSamples records the samples of training and of the validation set.
func (l *loader) recordSamples(step *pass.Step) {
	for _, text := range l.set.Notes() {
		step.Ledger.Note("", pass.Reason{Code: pass.ChannelsMoved, Detail: text})
	}
	d := pass.Data{Use: "training", Path: l.settings.Path, Labels: l.settings.Labels, Samples: len(l.training)}
	step.Ledger.Used(d)
	if d.Use, d.Samples = "validation", len(l.validation); d.Samples > 0 {
		step.Ledger.Used(d)
	}
}

// stats are those of reading the data; zero without data.
func (l *loader) stats() pass.Loading {
	if l.set == nil {
		return pass.Loading{}
	}
	return l.set.Stats()
}

func (l *loader) close() error {
	if l.set == nil {
		return nil
	}
	return l.set.Close()
}
