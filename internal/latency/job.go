package latency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/benchmark"
)

// The values of --backend.
const (
	Embedded = "embedded"
	ORT      = "ort"
)

// A Job is one measurement: a model, a backend and a batch size.
type Job struct {
	Model   string
	Backend string
	Library string // path of ONNX Runtime's library
	Level   string // graph optimization level; all if empty

	Batch int64
	Dims  map[string]int64
	Seed  uint64

	Workers int
	Limits  memory.Limits // of the engine
	Cache   string        // folder of packed weights of the engine; none if empty
	Budget  int64         // memory budget of the process in bytes; 0 for no budget

	Warmup int
	Runs   int           // minimum
	Time   time.Duration // minimum

	Decode int // tokens that a language model decodes one by one after the prompt; 0 for runs on random inputs
	Prompt int // tokens of the prompt
}

// A measurement is a Measure of which the rest is being measured.
type measurement struct{ *benchmark.Measure }

// Run measures j in this process. A run that would exceed the budget is not started, or
// ends after the first run.
func (j *Job) Run(ctx context.Context) (*benchmark.Measure, error) {
	m := measurement{&benchmark.Measure{
		Model: remote.Shown(j.Model), Backend: j.Backend, Batch: j.Batch, Workers: j.Workers, Baseline: resident(),
	}}
	m.PlainGo = j.Backend == Embedded && !kernel.Vectorized()
	f, err := remote.OpenModel(ctx, j.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in map[string]*ir.Array
	var explain func(error) error
	if j.Decode == 0 {
		if in, explain, err = j.inputs(ctx, f.Model); err != nil {
			return nil, err
		}
	}
	if f.Packed() && j.Backend == ORT {
		return nil, fmt.Errorf("%s: ONNX Runtime reads no packed models; unpack it first", j.Model)
	}
	if remote.Is(j.Model) && j.Backend == ORT {
		return nil, &remote.PathError{Path: j.Model,
			Err: errors.New("ONNX Runtime reads files on disk: download it first")}
	}
	start := time.Now()
	s, err := j.open(ctx, f, func(err error) { m.Warnings = append(m.Warnings, err.Error()) })
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m.Load = time.Since(start).Seconds()
	if j.Decode > 0 {
		if err := m.decode(ctx, j, f.Model, s); err != nil {
			return nil, err
		}
		if e, ok := s.(*engine.Interpreter); ok {
			m.Weights, _ = e.Weights()
		}
		m.Peak = resident()
		return m.Measure, nil
	}
	if e, ok := s.(*engine.Interpreter); ok {
		if err := m.planned(e, in, j.Budget); err != nil || m.Over() {
			return m.Measure, explain(err)
		}
	}
	if err := m.time(ctx, j, s, in); err != nil {
		return nil, explain(err)
	}
	m.Peak = resident()
	return m.Measure, nil
}

// resident is the peak resident memory of the process so far.
func resident() int64 { return report.Observe(0)().PeakResident }

// planned records the planned memory of the engine, and compares it with the budget.
func (m measurement) planned(e *engine.Interpreter, in map[string]*ir.Array, budget int64) error {
	u, err := e.Usage(specsOf(in))
	if err != nil {
		return err
	}
	m.Weights, _ = e.Weights()
	m.Arena = u.Plan.Size
	if need := m.Weights + m.Arena; budget > 0 && need > budget {
		m.Needs = need
	}
	return nil
}

// specsOf returns the types of inputs.
func specsOf(in map[string]*ir.Array) map[string]ir.Spec {
	specs := map[string]ir.Spec{}
	for name, a := range in {
		specs[name] = a.Spec()
	}
	return specs
}

// time runs s until the minimum number of runs and the minimum time are reached.
func (m measurement) time(ctx context.Context, j *Job, s engine.Session, in map[string]*ir.Array) error {
	for i := range max(j.Warmup, 1) {
		begin := time.Now()
		if _, err := s.Run(ctx, in, nil); err != nil {
			return err
		}
		if i == 0 {
			m.First = time.Since(begin).Seconds()
		}
	}
	// The memory is the peak so far, so that what was released in between counts.
	if held := resident() - m.Baseline; j.Budget > 0 && held > j.Budget {
		m.Needs = held
		return nil
	}
	var took []time.Duration
	for start := time.Now(); len(took) < max(j.Runs, 1) || time.Since(start) < j.Time; {
		begin := time.Now()
		if _, err := s.Run(ctx, in, nil); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	m.Runs = len(took)
	m.Min, m.Median, m.P90 = took[0].Seconds(), quantile(took, 0.5), quantile(took, 0.9)
	m.PerSec = float64(j.Batch) / m.Median
	return nil
}

// quantile is the q-quantile of a sorted list, with linear interpolation.
func quantile(sorted []time.Duration, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low].Seconds() + (at-float64(low))*(sorted[high]-sorted[low]).Seconds()
}

// inputs are one batch of random inputs, and a function that adds the sizes chosen for them to an error.
func (j *Job) inputs(ctx context.Context, m *ir.Model) (map[string]*ir.Array, func(error) error, error) {
	set, err := dataset.Generate(dataset.Inputs(m.Graph),
		dataset.Random{Seed: j.Seed, Batch: j.Batch, Dims: j.Dims, Ranges: dataset.Ranges(m)})
	if err != nil {
		return nil, nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(ctx, dataset.Order{Size: 1}) {
		if err != nil {
			return nil, nil, err
		}
		// Without reuse of memory the arrays are valid after the iteration.
		return b.Inputs, set.Explain, nil
	}
	return nil, nil, errors.New("the model has no inputs")
}

// open loads the model, and calls warn with errors of the weight cache.
func (j *Job) open(ctx context.Context, f *onnx.File, warn func(error)) (engine.Session, error) {
	switch j.Backend {
	case Embedded:
		var cache *weightcache.Cache
		if j.Cache != "" {
			cache = &weightcache.Cache{Dir: j.Cache, Warn: warn}
		}
		return cache.Open(ctx, f, engine.Options{Workers: j.Workers, Limits: j.Limits})
	case ORT:
		lib, err := ort.Load(j.Library)
		if err != nil {
			return nil, err
		}
		return ort.Open(lib, j.Model, ort.Options{Threads: j.Workers, Level: j.Level})
	}
	return nil, fmt.Errorf("unknown backend %q", j.Backend)
}
