package mcompress

import (
	"context"

	"github.com/mcompress/mcompress/internal/memplan"
)

// A MemoryPlan is the memory that running a model takes: weights, and the live tensors of each step with their peak.
type MemoryPlan = memplan.Facts

// MemoryOptions are the runs that PlanMemory plans. The zero value is one run with a batch of 1.
type MemoryOptions = memplan.Options

// PlanMemory computes the memory plan of the model at path without running it.
func PlanMemory(ctx context.Context, path string, o MemoryOptions) (*MemoryPlan, error) {
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.PlanMemory(ctx, o)
}

// PlanMemory is the function PlanMemory for an open model.
func (m *Model) PlanMemory(ctx context.Context, o MemoryOptions) (*MemoryPlan, error) {
	return memplan.Model(ctx, m.file, o)
}
