package report_test

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/onnx"
)

// The engine keeps sparse weights sparse, which ONNX Runtime expands: the report has the bytes that a session adds to
// the heap, and a plan of sparse forms, which reads no weights, is close to them.
func TestEngineMemory(t *testing.T) {
	for steps, fraction := range map[string]float64{"l1 amount=0.9|delta": 0.25, "l1 amount=0.9|coo": 0.25,
		"float16": 1.1} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		r, err := job.Run(context.Background(), job.Options{
			Input: filepath.Join("..", "fixtures", "mlp.onnx"), Output: out, Steps: pipeline(t, steps), Version: "test",
			Workers: 2, Memory: 64 << 20, Verify: &job.Verification{},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, dense := r.Report.Totals.Engine, r.Report.Totals.LoadedBytes
		if got == nil {
			t.Fatalf("%s: no bytes", steps)
		}
		if float64(got.After) > fraction*float64(got.Before) || dense.After < dense.Before*9/10 {
			t.Errorf("%s: %d → %d bytes in the engine, %d → %d in ONNX Runtime", steps, got.Before, got.After, dense.Before,
				dense.After)
		}
		if heap := float64(heapOf(t, out)); math.Abs(heap-float64(got.After)) > 0.1*float64(got.After)+32<<10 {
			t.Errorf("%s: %d bytes, the heap grows by %.0f", steps, got.After, heap)
		}
		plan, err := mcompress.PlanMemory(context.Background(), out, mcompress.MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// gaps of delta have escapes, which are not stored
		if x := float64(plan.Held.Bytes); math.Abs(x-float64(got.After)) > 0.25*float64(got.After) {
			t.Errorf("%s: %d bytes, %.0f planned", steps, got.After, x)
		}
		agrees(t, steps+" planned", plan.ORT, dense.After)
	}
}

// heapOf is the growth of the heap by a session of the model at path.
func heapOf(t *testing.T, path string) int64 {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := live()
	e, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := live() - before
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// live is the bytes of the heap that are in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
