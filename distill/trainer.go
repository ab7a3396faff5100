package distill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A trainer opens the parts of a training run, in the order in which they depend on each other, and runs its epochs.
// Each part has a duty and holds what it needs for that; none of them holds the trainer.
type trainer struct {
	*environment
	settings   *settings
	params     *parameters
	loader     *loader
	fakeQuant  *fakeQuant // nil without QAT
	augmenter  *augmenter // nil without --augment
	limit      *processLimit
	laterBytes func(context.Context) (int64, error) // memory of the process after the training; may be nil
	state      state
	progress   progress
	temporary  *atomicfile.Folder // nil until prepare

	// set by describe
	teachers *teachers // nil without distillation losses
	measure  *measurement
	graphs   *graphBuilder

	// set by openGraphs
	candidate                         // the chosen layout with its graphs
	plannedMemory pass.TrainingMemory // of the layout, for reports
	steps         *stepRunner         // trains on samples
	validation    *validation         // evaluates weights and keeps the best ones
	schedule      *scheduler          // chooses number of steps, learning rate and patience
	checkpoint    *checkpoint         // saves and restores the training
}

func newTrainer(m *ir.Model, e *ir.Eval, workers int, s *settings) *trainer {
	env := &environment{model: m, eval: e, workers: workers}
	params := &parameters{}
	l := &loader{environment: env, settings: s, params: params}
	return &trainer{
		environment: env, settings: s, params: params, loader: l,
		limit: &processLimit{environment: env, budget: int64(s.MemoryBudget), params: params, loader: l},
	}
}

// close releases sessions, data and temporary files.
func (t *trainer) close() error {
	// Before the temporary folder, in which the cache of the teachers has open files.
	errs := []error{t.step.close(), t.update.close(), t.evaluator.close(), t.teachers.close(), t.measure.close(),
		t.loader.close()}
	if t.temporary != nil {
		errs = append(errs, t.temporary.Close())
	}
	t.limit.remove()
	return errors.Join(errs...)
}

// prepare opens data and teachers, reads the weights, and opens the graphs of a layout.
func (t *trainer) prepare(ctx context.Context, teachers []*ir.Model) (err error) {
	if t.temporary, err = atomicfile.NewFolder(""); err != nil {
		return err
	}
	// Before describe, which opens the cache of the teachers in this folder.
	t.folder = t.temporary.Path
	// Before anything large is read: the Go runtime would let garbage of the loading grow beyond the budget.
	t.limit.set(t.limit.budget, 0)
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
	// After reading, which counts zeros. With --reinit those that are not known to be pruned get random values.
	if names := t.params.unknownZeros(); len(names) > 0 && t.settings.Reinit == nil {
		t.settings.choose("keep-zeros", false,
			fmt.Sprintf("many elements of %s are 0, and nothing reports that they were pruned: they are trained",
				someNames(names)))
	}
	// After reading: the zeros of pruned weights are kept.
	if t.settings.Reinit != nil {
		t.params.reinit(tape, uint64(*t.settings.Reinit))
	}
	// Before a layout is chosen: weights that share codebooks have fewer trained elements.
	if err := t.graphs.updateQuantization(ctx); err != nil {
		return err
	}
	if err := t.openGraphs(ctx); err != nil {
		return err
	}
	return t.openCheckpoint(ctx, teachers)
}

// someNames lists the first names of weights.
func someNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// describe opens data and teachers, and builds all that graphs and plans depend on: losses, types of inputs and
// weights. It returns a graph with the weights as parameters.
func (t *trainer) describe(ctx context.Context, teachers []*ir.Model) (*grad.Tape, error) {
	if err := t.settings.checkScores(t.model.Graph); err != nil {
		return nil, err
	}
	if err := t.loader.open(ctx); err != nil {
		return nil, err
	}
	// After the data, whose batch sets the shapes, and before the terms: features are terms of the loss, and their
	// projections are parameters.
	fs, err := t.loader.features(ctx, teachers)
	if err != nil {
		return nil, err
	}
	labelled := t.loader.hasClasses()
	terms, err := t.settings.terms(t.model, teachers, fs, labelled, t.loader.heads)
	if err != nil {
		return nil, err
	}
	var heads []head
	if labelled {
		heads, _ = t.loader.heads() // an error matters to the terms only
	}
	// After the terms, which name the values that the graph of each teacher has to compute.
	if t.teachers, err = newTeachers(ctx, teachers, terms, fs, t.loader); err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	tape, err := grad.New(ctx, t.model, grad.Options{
		Inputs: t.loader.smallest(), Train: t.params.trainable, Change: t.loader.rewrite(ctx), Append: fs.ofStudent(),
		BatchStatistics: t.settings.BatchStatistics,
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
	t.limit.models = models(t.teachers, t.measure)
	t.graphs = &graphBuilder{
		environment: t.environment, settings: t.settings, loader: t.loader, params: t.params, fakeQuant: t.fakeQuant,
		features: fs, terms: terms, heads: heads, measure: t.measure, nodes: t.model.Graph.NodeCount(),
	}
	return tape, nil
}

// planner returns the planner of layouts, once the graphs can be built.
func (t *trainer) planner() *planner {
	return &planner{graphBuilder: t.graphs, models: t.limit.models, tapes: map[int]*step{}, arenas: map[string]int64{}}
}

// openGraphs chooses a layout, opens its graphs, and creates the arrays that it needs.
func (t *trainer) openGraphs(ctx context.Context) error {
	// Measured while weights and teachers are in memory, but neither the sessions of the training nor optimizer states:
	// what remains without the former is the program.
	pl, program := t.planner(), int64(0)
	if t.limit.budget > 0 || t.limit.exclusive {
		program = t.limit.measureProgram()
	}
	if t.limit.budget > 0 {
		pl.programSize = program
		if t.laterBytes != nil {
			var err error
			if pl.later, err = t.laterBytes(ctx); err != nil {
				return err
			}
		}
	}
	c, err := pl.choose(ctx)
	if err != nil {
		return err
	}
	if t.limit.budget > 0 {
		// After the choice, which is for one worker thread: the layout must not depend on the number of threads.
		if err := t.limit.reduceWorkers(ctx, c); err != nil {
			return err
		}
		t.limit.set(t.limit.budget, c.memory.Transient)
	}
	if t.plannedMemory, err = pl.summary(ctx, c); err != nil {
		return err
	}
	// Planning and opening are separate: sessions, optimizer states and their files exist for the chosen layout only.
	t.candidate = *c
	t.params.allocate(t.layout)
	if err := t.open(ctx, t.session(), *t.settings.Seed); err != nil {
		return err
	}
	// Before the first run, so that no graph replaces the arena of an earlier one by a larger one.
	if err := t.limit.reserveArena(c, program); err != nil {
		return err
	}
	// Last: the moving average starts from a copy of the weights, and the loop needs open graphs.
	t.connect()
	return attachRecorder(t.settings.Recorder, &t.candidate, t.teachers, t.loader.set)
}

// connect gives the parts of the training loop what they use.
func (t *trainer) connect() {
	t.progress.recorder, t.progress.Method, t.progress.Workers = t.settings.Recorder, t.settings.method, t.workers
	feed := &microBatches{loader: t.loader, augmenter: t.augmenter, layout: t.layout}
	// A trial without data has random labels, which must be classes of every output that a loss compares with them.
	if t.loader.set == nil {
		feed.classes = commonClasses(t.graphs.terms, t.step.tape)
	}
	t.steps = &stepRunner{
		data: feed, candidate: &t.candidate, graphs: t.graphs, teachers: t.teachers, state: &t.state, progress: &t.progress,
	}
	t.validation = &validation{
		graphs: t.graphs, teachers: t.teachers, evaluator: t.evaluator, average: newAverage(t.settings.EMA, t.params),
		state: &t.state,
	}
	t.schedule = &scheduler{
		settings: t.settings, trials: &rateTrials{settings: t.settings, terms: t.graphs.terms, steps: t.steps},
		validation: t.validation, state: &t.state,
	}
}
