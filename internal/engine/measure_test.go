package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A run uses exactly the planned memory, although the plan was made without weights: same arena size, and same peak. No
// step writes outside, nor depends on earlier contents.
func TestPlanEqualsMeasurement(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) { measured(t, path) })
	}
}

func measured(t *testing.T, path string) {
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2})
	var missing *engine.Unsupported
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	batch, err := sample(f.Model.Graph, path)
	if err != nil {
		t.Skip(err)
	}
	// its symbolic axes have no names, and it accepts chunks of one length
	if label := filepath.Base(filepath.Dir(path)); label == "silero_vad" {
		batch.Inputs["input"], batch.Inputs["sr"] = ir.NewArray(ir.Float, 1, 512), ir.ArrayOf([]int64{16000})
	}
	m, err := e.Measure(t.Context(), batch.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]ir.Spec{}
	for name, a := range batch.Inputs {
		in[name] = a.Spec()
	}
	p, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2, PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	u, err := p.Usage(in)
	if err != nil {
		t.Fatal(err)
	}
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("arena %d, peak %d, written %d, heap %d, out %d; %d dynamic of %d", m.Arena, m.Peak, m.Written, m.Heap,
		m.Outputs, len(u.Dynamic), len(u.Steps))
	if arena := (m.Arena + memory.Align - 1) / memory.Align * memory.Align; arena != u.Plan.Size {
		t.Errorf("arena of %d bytes, planned %d", arena, u.Plan.Size)
	}
	if m.Peak != line.Peak {
		t.Errorf("peak of %d bytes at step %d, planned %d at step %v", m.Peak, m.At, line.Peak, line.Peaks)
	}
}
