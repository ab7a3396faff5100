package mcompress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/child"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/report/benchmark"
)

// The backends that run models.
const (
	BackendEmbedded = latency.Embedded // the engine of this program
	BackendORT      = latency.ORT      // ONNX Runtime
)

// LibraryVariable is the environment variable with the path of ONNX Runtime's library, where no path is given.
const LibraryVariable = ort.Variable

// A Benchmark measures latency, throughput and peak memory of models on random inputs, on each backend and at each
// batch size. The zero value of each field but Models is a default.
type Benchmark struct {
	Models  []string // paths or URLs
	Backend string   // one of the backends; empty for both, of which ONNX Runtime may be missing
	Library string   // path of ONNX Runtime's library, or of its folder

	Batches []int64          // sizes of a dynamic batch axis; one of 1 if empty
	Dims    map[string]int64 // sizes of other dynamic axes by name
	Seed    uint64           // of the inputs

	Warmup int           // runs before those that are timed, at least 1
	Runs   int           // minimum number of timed runs, at least 1
	Time   time.Duration // minimum time of the timed runs

	Decode int // tokens that a language model decodes one by one after a prompt; 0 for runs on random inputs
	Prompt int // tokens of the prompt; 0 for 128

	Budget int64 // memory of a run in bytes; 0 for no budget
	Halve  bool  // halve the batch of a run beyond the budget until it fits, instead of an error

	Limits      Limits
	WeightCache string // folder of packed weights of the embedded engine, see SessionOptions

	// Program starts a process for each measurement: a program with arguments that calls ServeMeasurement, such as
	// []string{"mcompress", MeasureCommand}. Without it all are made in this process, whose peak memory then includes
	// that of the measurements before.
	Program []string

	Warning func(error) // is called with what is left out or may be slower; may be nil
}

// A BudgetError is a run that takes more memory than the budget.
type BudgetError struct {
	Batch  int64
	Needs  int64 // bytes
	Budget int64 // bytes
}

// Error states both sizes.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("a batch of %d takes %s bytes, the budget is %s", e.Batch, humanize.Comma(e.Needs),
		humanize.Comma(e.Budget))
}

// Check names a field that is not valid, without opening a model.
func (b Benchmark) Check() error {
	switch {
	case len(b.Models) == 0:
		return fieldErrorf("{Models} is empty")
	case b.Backend != "" && b.Backend != BackendEmbedded && b.Backend != BackendORT:
		return fieldErrorf("{Backend}: there are %s and %s", BackendEmbedded, BackendORT)
	case b.Library != "" && b.Backend == BackendEmbedded:
		return fieldErrorf("{Library} requires {Backend} %s", BackendORT)
	case b.WeightCache != "" && b.Backend == BackendORT:
		return fieldErrorf("{WeightCache} requires {Backend} %s", BackendEmbedded)
	case b.Runs < 0:
		return fieldErrorf("{Runs} %d: must not be negative", b.Runs)
	case b.Warmup < 0:
		return fieldErrorf("{Warmup} %d: must not be negative", b.Warmup)
	case b.Time < 0:
		return fieldErrorf("{Time} %v: must not be negative", b.Time)
	case b.Decode < 0 || b.Prompt < 0:
		return fieldErrorf("{Decode} and {Prompt} must be positive")
	case b.Decode > 0 && b.Budget > 0:
		return fieldErrorf("{Decode} excludes {Budget}")
	case b.Halve && b.Budget == 0:
		return fieldErrorf("{Halve} requires {Budget}")
	}
	for _, n := range b.Batches {
		if n < 1 {
			return fieldErrorf("{Batches} %d: must be a positive number", n)
		}
	}
	return b.Limits.check()
}

// warn calls the function of the caller.
func (b Benchmark) warn(err error) {
	if b.Warning != nil {
		b.Warning(err)
	}
}

// backends are those that are measured, and the path of ONNX Runtime's library. One that is neither asked for nor there
// is a warning.
func (b Benchmark) backends() (names []string, library string, err error) {
	if b.Backend == BackendEmbedded {
		return []string{BackendEmbedded}, "", nil
	}
	library, err = ort.Find(b.Library)
	switch {
	case err != nil && (b.Backend == BackendORT || b.Library != ""):
		return nil, "", &LibraryError{err}
	case err != nil:
		b.warn(fmt.Errorf("without ONNX Runtime: %w", err))
		return []string{BackendEmbedded}, "", nil
	case b.Backend == BackendORT:
		return []string{BackendORT}, library, nil
	}
	return []string{BackendEmbedded, BackendORT}, library, nil
}

// Measure measures every model, on every backend, at every batch size, in the order of batch sizes, backends and
// models. A run beyond the budget is a *BudgetError.
func (b Benchmark) Measure(ctx context.Context) ([]*benchmark.Measure, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	backends, library, err := b.backends()
	if err != nil {
		return nil, err
	}
	if len(b.Batches) == 0 {
		b.Batches = []int64{1}
	}
	var all []*benchmark.Measure
	for _, batch := range b.Batches {
		for _, backend := range backends {
			for _, model := range b.Models {
				j := b.job(model)
				j.Backend, j.Library, j.Batch = backend, library, batch
				m, err := b.fitting(ctx, j)
				if err != nil {
					return nil, ensureModel(model, err)
				}
				for _, w := range m.Warnings {
					b.warn(errors.New(w))
				}
				all = append(all, m)
			}
		}
	}
	latency.MarkKnees(all)
	return all, nil
}

// job is the measurement of a model on the embedded backend.
func (b Benchmark) job(model string) latency.Job {
	return latency.Job{
		Model: model, Backend: BackendEmbedded, Dims: b.Dims, Seed: b.Seed,
		Workers: b.Limits.threads(), Limits: memory.Limits{Memory: b.Limits.Memory, Steps: b.Limits.Steps},
		Cache: b.WeightCache, Budget: b.Budget,
		Warmup: b.Warmup, Runs: b.Runs, Time: b.Time, Decode: b.Decode, Prompt: cmp.Or(b.Prompt, 128),
	}
}

// fitting measures a job, with half of the batch, and so on, if it takes more than the budget and may be halved.
func (b Benchmark) fitting(ctx context.Context, j latency.Job) (*benchmark.Measure, error) {
	var halved []int64
	for {
		m, err := b.measure(ctx, j)
		if err != nil {
			return nil, err
		}
		if !m.Over() {
			m.Halved = halved
			return m, nil
		}
		if !b.Halve || j.Batch == 1 {
			return nil, &BudgetError{j.Batch, m.Needs, j.Budget}
		}
		halved = append(halved, j.Batch)
		j.Batch /= 2
	}
}

// measure measures a job in a process of its own, if there is a program.
func (b Benchmark) measure(ctx context.Context, j latency.Job) (*benchmark.Measure, error) {
	if len(b.Program) == 0 {
		return j.Run(ctx)
	}
	m := &benchmark.Measure{}
	return m, child.Run(ctx, b.Program, j, m)
}

// MeasureCommand is the argument of the program mcompress that calls ServeMeasurement.
const MeasureCommand = "__measure"

// ServeMeasurement reads a measurement of a Benchmark from in, makes it in this process, and writes the result, or the
// error, to out.
func ServeMeasurement(ctx context.Context, in io.Reader, out io.Writer) error {
	return child.Serve(ctx, in, out, func(ctx context.Context, j latency.Job) (*benchmark.Measure, error) {
		if j.Limits.Memory > 0 {
			memory.SetLimit(j.Limits.Memory)
		}
		return j.Run(ctx)
	}, ExitCode)
}
