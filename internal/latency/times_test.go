package latency

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/benchmark"
)

// A slow session is one whose runs take known numbers of seconds, those after the last number as many; -1 is a run that
// fails.
type slow struct {
	engine.Session
	seconds []int
	n       int
}

var errRun = errors.New("broken")

func (s *slow) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	d := s.seconds[min(s.n, len(s.seconds)-1)]
	if s.n++; d < 0 {
		return nil, errRun
	}
	time.Sleep(time.Duration(d) * time.Second)
	if s.Session == nil {
		return nil, nil
	}
	return s.Session.Run(ctx, in, fetch)
}

// Runs are counted until their minimum number and time, both without those of the warm-up.
func TestTimesOfRuns(t *testing.T) {
	for name, c := range map[string]struct {
		j       Job
		seconds []int
		want    benchmark.Measure
	}{
		"by time": {Job{Batch: 4, Warmup: 2, Runs: 2, Time: 11 * time.Second}, []int{10, 9, 1, 3, 2, 1, 3, 2},
			benchmark.Measure{Runs: 6, First: 10, Min: 1, Median: 2, P90: 3, PerSec: 2}},
		"just in time": {Job{Batch: 4, Warmup: 1, Runs: 2, Time: 4 * time.Second}, []int{10, 1, 3, 100},
			benchmark.Measure{Runs: 2, First: 10, Min: 1, Median: 2, P90: 2.8, PerSec: 2}},
		"by number": {Job{Batch: 1, Runs: 3, Time: time.Second}, []int{10, 2},
			benchmark.Measure{Runs: 3, First: 10, Min: 2, Median: 2, P90: 2, PerSec: 0.5}},
		"without numbers": {Job{Batch: 1}, []int{10, 4},
			benchmark.Measure{Runs: 1, First: 10, Min: 4, Median: 4, P90: 4, PerSec: 0.25}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := measurement{&benchmark.Measure{}}
			if err := m.time(t.Context(), &c.j, &slow{seconds: c.seconds}, nil); err != nil {
				t.Fatal(err)
			}
			if !equal(*m.Measure, c.want) {
				t.Errorf("%s: got %+v, want %+v", name, *m.Measure, c.want)
			}
		})
	}
	for _, seconds := range [][]int{{-1}, {1, -1}, {1, 1, -1}} {
		synctest.Test(t, func(t *testing.T) {
			if err := (measurement{&benchmark.Measure{}}).time(t.Context(), &Job{Runs: 2}, &slow{seconds: seconds}, nil); !errors.Is(err,
				errRun) {
				t.Errorf("run %d fails: %v", len(seconds), err)
			}
		})
	}
}

// Times of decoding are those of whole runs, and rates those of their prompts and of their steps.
func TestTimesOfDecoding(t *testing.T) {
	f, err := onnx.Open(filepath.Join(conform.Shared(t), "fixtures", "models", "transformer", "gpt2_tiny_fp32",
		"model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := engine.Open(t.Context(), f.Model, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	counted := []int{4, 1, 2, 6, 1, 1, 5, 2, 2} // runs of 7, 8 and 9 seconds
	for name, c := range map[string]struct {
		j       Job
		seconds []int
		want    benchmark.Measure
	}{
		"warm": {Job{Warmup: 3, Runs: 1, Time: 20 * time.Second}, append([]int{100, 100, 100}, counted...),
			benchmark.Measure{Runs: 3, Min: 7, Median: 8, P90: 8.8, Prompt: 6, Decode: 4. / 3}},
		"cold": {Job{Runs: 3, Time: time.Second}, counted,
			benchmark.Measure{Runs: 3, Min: 7, Median: 8, P90: 8.8, Prompt: 6, Decode: 4. / 3}},
		"just in time": {Job{Warmup: 1, Runs: 1, Time: 7 * time.Second}, append([]int{1, 1, 1}, counted...),
			benchmark.Measure{Runs: 1, Min: 7, Median: 7, P90: 7, Prompt: 7.5, Decode: 4. / 3}},
	} {
		c.j.Batch, c.j.Prompt, c.j.Decode = 2, 15, 2
		c.want.PerSec = 2 / c.want.Median
		synctest.Test(t, func(t *testing.T) {
			m := measurement{&benchmark.Measure{}}
			if err := m.decode(t.Context(), &c.j, f.Model, &slow{Session: e, seconds: c.seconds}); err != nil {
				t.Fatal(err)
			}
			if m.Cache = 0; !equal(*m.Measure, c.want) {
				t.Errorf("%s: got %+v, want %+v", name, *m.Measure, c.want)
			}
		})
	}
	for _, seconds := range [][]int{{-1}, {1, -1}, {1, 1, 1, -1}} {
		synctest.Test(t, func(t *testing.T) {
			j := &Job{Batch: 1, Prompt: 3, Decode: 2, Warmup: 1}
			if err := (measurement{&benchmark.Measure{}}).decode(t.Context(), j, f.Model,
				&slow{Session: e, seconds: seconds}); !errors.Is(err, errRun) {
				t.Errorf("run %d fails: %v", len(seconds), err)
			}
		})
	}
}

// equal compares figures up to the rounding of seconds.
func equal(a, b benchmark.Measure) bool {
	near := func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 }
	return a.Runs == b.Runs && near(a.First, b.First) && near(a.Min, b.Min) && near(a.Median, b.Median) &&
		near(a.P90, b.P90) &&
		near(a.PerSec, b.PerSec) && near(a.Prompt, b.Prompt) && near(a.Decode, b.Decode)
}
