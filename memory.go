package mcompress

import (
	"context"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// MemoryOptions are the runs that PlanMemory plans. The zero value is one run with a batch of 1.
type MemoryOptions struct {
	Limits  Limits           // of the run, whose scratch memory depends on Workers
	Batches []int64          // sizes of dynamic batch axes, a run for each
	Dims    map[string]int64 // sizes of dynamic axes by name
	Budget  int64            // find the largest batch within this number of bytes; 0 for none
	Layout  bool             // count the change of memory traffic by channels last (NHWC)
	Measure bool             // run the model once on random inputs and measure its memory
	Plain   bool             // plan without fusions

	// Page is set to the memory of the last run over time, which its method HTML draws, if it is not nil and the run is
	// planned.
	Page *report.Memory
}

// PlanMemory computes the memory plan of the model at a path or URL without running it.
func PlanMemory(ctx context.Context, path string, o MemoryOptions) (*memoryplan.Plan, error) {
	m, err := OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.PlanMemory(ctx, o)
}

// PlanMemory is the function PlanMemory for an open model.
func (m *Model) PlanMemory(ctx context.Context, o MemoryOptions) (*memoryplan.Plan, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := o.Limits.check(); err != nil {
		return nil, err
	}
	planned, err := memplan.Model(ctx, m.file, memplan.Options{
		Workers: o.Limits.threads(), Batches: o.Batches, Dims: o.Dims, Budget: o.Budget, Limits: o.Limits.run(),
		Layout: o.Layout, Measure: o.Measure, Plain: o.Plain,
	})
	if err != nil {
		return nil, withModel(m.file.Path, err)
	}
	if o.Page != nil && planned.Unplanned == "" {
		*o.Page = *planned.Page(filepath.Base(m.file.Path))
	}
	return planned.Plan, nil
}
