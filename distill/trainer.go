package distill

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A trainer trains one model. It composes the parts of a training run: loader, graphs, teacher, evaluator, checkpoint.
type trainer struct {
	*environment
	settings  *settings
	params    *parameters
	loader    *loader
	fakeQuant *fakeQuant // nil without QAT
	teachers  *teachers  // nil without distillation losses
	augmenter *augmenter // nil without --augment
	measure   *measurement
	graphs    *graphBuilder
	progress  func(pass.Progress) // called after each step and at the end; may be nil
	alone     bool                // the process does nothing else: its memory is limited to the plan

	minimum func(context.Context) (int64, error) // memory after the training; may be nil

	layout    *layout
	memory    memoryUsage
	planned   pass.TrainingMemory // of the layout, for reports
	step      *step
	update    *accumulatedUpdate // nil if steps update weights
	evaluator *evaluator         // nil without validation set
	average   *average           // nil without --ema
	identity  identity           // for checkpoints
	counter   *counter           // nil before the first step in several micro-batches
	state     state
	elapsed   elapsed

	temporary *atomicfile.Folder // nil until prepare
	unbound   func()             // restores the memory limit of the process; nil without one
}

func newTrainer(m *ir.Model, e *ir.Eval, workers int, s *settings) *trainer {
	env := &environment{model: m, eval: e, workers: workers}
	params := &parameters{}
	return &trainer{
		environment: env, settings: s, params: params,
		loader: &loader{environment: env, settings: s, params: params},
	}
}

// close releases sessions, data and temporary files.
func (t *trainer) close() error {
	errs := []error{t.step.close(), t.update.close(), t.evaluator.close(), t.teachers.close(), t.measure.close(), t.loader.close()}
	if t.temporary != nil {
		errs = append(errs, t.temporary.Close())
	}
	if t.unbound != nil {
		t.unbound()
	}
	return errors.Join(errs...)
}

// prepare opens data and teachers, reads the weights, and opens the graphs of a layout.
func (t *trainer) prepare(ctx context.Context, teachers []*ir.Model) (err error) {
	if t.temporary, err = atomicfile.NewFolder(""); err != nil {
		return err
	}
	t.folder = t.temporary.Path
	bounded{t}.bound(int64(t.settings.MemoryBudget), 0)
	tape, err := t.describe(ctx, teachers)
	if err != nil {
		return err
	}
	if t.augmenter, err = newAugmenter(t.loader); err != nil {
		return err
	}
	if err := t.params.read(ctx, t.eval); err != nil {
		return err
	}
	if names := t.params.unknownZeros(); len(names) > 0 && t.settings.Reinit == nil {
		t.settings.choose("keep-zeros", false, fmt.Sprintf("many elements of %s are 0, and nothing reports that they were pruned: they are trained", someNames(names)))
	}
	if t.settings.Reinit != nil {
		t.params.reinit(tape, uint64(*t.settings.Reinit))
	}
	if err := t.observeQuantization(ctx); err != nil {
		return err
	}
	if err := t.openGraphs(ctx); err != nil {
		return err
	}
	return t.identify(ctx, teachers)
}

// someNames lists the first names of weights.
func someNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// describe opens data and teachers, and builds all that graphs and plans depend on: losses, types of inputs and weights. It returns a graph
// with the weights as parameters.
func (t *trainer) describe(ctx context.Context, teachers []*ir.Model) (*grad.Tape, error) {
	if err := t.settings.checkScores(t.model.Graph); err != nil {
		return nil, err
	}
	if err := t.loader.open(ctx); err != nil {
		return nil, err
	}
	fs, err := t.loader.features(ctx, teachers)
	if err != nil {
		return nil, err
	}
	labelled := t.loader.classified()
	terms, err := t.settings.terms(t.model, teachers, fs, labelled, t.loader.heads)
	if err != nil {
		return nil, err
	}
	var heads []head
	if labelled {
		heads, _ = t.loader.heads() // an error matters to the terms only
	}
	if t.teachers, err = newTeachers(ctx, teachers, terms, fs, t.loader); err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	tape, err := grad.New(ctx, t.model, grad.Options{
		Inputs: t.loader.smallest(), Train: t.params.trainable, Change: t.loader.rewrite(ctx), Append: fs.ofStudent(), BatchStatistics: t.settings.BatchStatistics,
	})
	if err != nil {
		return nil, err
	}
	if err := t.params.describe(tape, t.settings.chosenOptimizer()); err != nil {
		return nil, err
	}
	t.settings.movement.attach(t.params)
	if t.measure, err = newMeasurement(ctx, teachers, t.loader); err != nil {
		return nil, err
	}
	t.graphs = &graphBuilder{environment: t.environment, settings: t.settings, loader: t.loader, params: t.params, fakeQuant: t.fakeQuant, features: fs, terms: terms, heads: heads, measure: t.measure, nodes: t.model.Graph.NodeCount()}
	return tape, nil
}

// planner returns the planner of layouts, once the graphs can be built.
func (t *trainer) planner() *planner {
	return &planner{graphBuilder: t.graphs, teachers: t.teachers, tapes: map[int]*step{}, arenas: map[string]int64{}}
}

// openGraphs chooses a layout, opens its graphs, and creates the arrays that it needs.
func (t *trainer) openGraphs(ctx context.Context) error {
	pl, program := t.planner(), int64(0)
	if t.settings.MemoryBudget > 0 || t.alone {
		program = bounded{t}.measureProgram()
	}
	if t.settings.MemoryBudget > 0 {
		pl.measured = program
		if t.minimum != nil {
			var err error
			if pl.later, err = t.minimum(ctx); err != nil {
				return err
			}
		}
	}
	c, err := pl.choose(ctx)
	if err != nil {
		return err
	}
	if t.settings.MemoryBudget > 0 {
		if err := (bounded{t}).limitWorkers(ctx, c); err != nil {
			return err
		}
		bounded{t}.bound(int64(t.settings.MemoryBudget), c.memory.Transient)
	}
	if t.planned, err = pl.summary(ctx, c); err != nil {
		return err
	}
	t.layout, t.step, t.update, t.evaluator, t.memory = c.layout, c.step, c.update, c.evaluator, c.memory
	t.params.allocate(t.layout)
	t.average = newAverage(t.settings.EMA, t.params)
	o := t.session()
	o.Seed = *t.settings.Seed
	if err := t.step.open(ctx, o); err != nil {
		return err
	}
	if err := t.update.open(ctx, t.session()); err != nil {
		return err
	}
	if err := t.evaluator.open(ctx, t.session()); err != nil {
		return err
	}
	if err := (bounded{t}).reserveArena(c, program); err != nil {
		return err
	}
	return t.attach()
}

// observeQuantization updates how QAT quantizes weights and activations. A snapshot of the weights lets resumed training repeat it.
func (t *trainer) observeQuantization(ctx context.Context) error {
	if t.fakeQuant == nil {
		return nil
	}
	if err := t.graphs.observeQuantization(ctx); err != nil {
		return fmt.Errorf("--qat: %w", err)
	}
	return t.params.writeTo(t.observedFile())
}

// observeAgain repeats the last observation before training was interrupted.
func (t *trainer) observeAgain(ctx context.Context) error {
	if t.fakeQuant == nil {
		return nil
	}
	if err := t.params.readFrom(t.observedFile()); err != nil {
		return err
	}
	return t.observeQuantization(ctx)
}

// Files with snapshots of the weights: the best ones, and those of the last observation for QAT.
func (t *trainer) bestFile() string     { return filepath.Join(t.folder, "best") }
func (t *trainer) observedFile() string { return filepath.Join(t.folder, "observed") }
