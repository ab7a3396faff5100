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
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Backends, as --backend names them.
const (
	Embedded = "embedded"
	ORT      = "ort"
)

// A Job is one measurement: one model on one backend at one batch size.
type Job struct {
	Model   string
	Backend string
	Library string // of ONNX Runtime
	Level   string // of its optimisation; all if empty

	Batch int64
	Dims  map[string]int64
	Seed  uint64

	Workers int
	Memory  int64 // bytes that the engine may hold; 0 for no limit
	Budget  int64 // bytes above which the run counts as out of memory; 0 for no budget

	Warmup int
	Runs   int           // at least
	Time   time.Duration // at least
}

// A Measure is what came of a Job. Seconds are of one run; bytes are resident memory of the
// process.
type Measure struct {
	Model    string  `json:"model"`
	Backend  string  `json:"backend"`
	Batch    int64   `json:"batch"`
	Workers  int     `json:"workers"`
	Runs     int     `json:"runs"`
	Load     float64 `json:"load_seconds"`
	Min      float64 `json:"min_seconds"`
	Median   float64 `json:"median_seconds"`
	P90      float64 `json:"p90_seconds"`
	PerSec   float64 `json:"samples_per_second"`
	Baseline int64   `json:"baseline_bytes"` // before the model was loaded
	Peak     int64   `json:"peak_bytes"`
	Arena    int64   `json:"arena_bytes,omitempty"`   // of the engine
	Weights  int64   `json:"weights_bytes,omitempty"` // that the engine holds
	Needs    int64   `json:"needs_bytes,omitempty"`   // more than the budget: nothing was measured
	Halved   []int64 `json:"halved,omitempty"`        // batches that did not fit the budget
}

// Over reports whether the run would not fit its budget.
func (m *Measure) Over() bool { return m.Needs > 0 }

// Run measures j in this process. Where the run would not fit the budget it is not made, or
// ends after the first time.
func (j *Job) Run(ctx context.Context) (*Measure, error) {
	m := &Measure{Model: j.Model, Backend: j.Backend, Batch: j.Batch, Workers: j.Workers, Baseline: resident()}
	f, err := onnx.Open(j.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := j.inputs(ctx, f.Model)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	s, err := j.open(ctx, f.Model, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m.Load = time.Since(start).Seconds()
	if e, ok := s.(*engine.Interpreter); ok {
		if err := m.planned(e, in, j.Budget); err != nil || m.Over() {
			return m, err
		}
	}
	if err := m.time(ctx, j, s, in); err != nil {
		return nil, err
	}
	m.Peak = resident()
	return m, nil
}

// resident is the most memory that the process has held so far.
func resident() int64 { return report.Observe(0)().PeakResident }

// planned notes what the engine will hold, and compares it with the budget.
func (m *Measure) planned(e *engine.Interpreter, in map[string]*ir.Array, budget int64) error {
	specs := map[string]ir.Spec{}
	for name, a := range in {
		specs[name] = a.Spec()
	}
	u, err := e.Usage(specs)
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

// time runs s until it ran often and long enough.
func (m *Measure) time(ctx context.Context, j *Job, s engine.Session, in map[string]*ir.Array) error {
	for range max(j.Warmup, 1) {
		if _, err := s.Run(ctx, in, nil); err != nil {
			return err
		}
	}
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

// quantile is the time below which the share q of a sorted list lies, between two of them where it falls there.
func quantile(sorted []time.Duration, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low].Seconds() + (at-float64(low))*(sorted[high]-sorted[low]).Seconds()
}

// inputs are one batch, made up from the seed.
func (j *Job) inputs(ctx context.Context, m *ir.Model) (map[string]*ir.Array, error) {
	set, err := dataset.Generate(dataset.Inputs(m.Graph), dataset.Random{Seed: j.Seed, Batch: j.Batch, Dims: j.Dims, Ranges: dataset.Ranges(m)})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(ctx, dataset.Order{Size: 1}) {
		if err != nil {
			return nil, err
		}
		return b.Inputs, nil
	}
	return nil, errors.New("the model has no inputs")
}

// open loads the model.
func (j *Job) open(ctx context.Context, m *ir.Model, p engine.Profiler) (engine.Session, error) {
	switch j.Backend {
	case Embedded:
		return engine.Open(ctx, m, engine.Options{Workers: j.Workers, MemoryLimit: j.Memory, Profile: p})
	case ORT:
		lib, err := ort.Load(j.Library)
		if err != nil {
			return nil, err
		}
		return ort.Open(lib, j.Model, ort.Options{Threads: j.Workers, Level: j.Level})
	}
	return nil, fmt.Errorf("backend %q is not known", j.Backend)
}
