package mcompress

import (
	"context"

	"github.com/mcompress/mcompress/internal/inspect"
	"github.com/mcompress/mcompress/report/inspection"
)

// Inspect describes the model at a path or URL.
func Inspect(ctx context.Context, path string) (*inspection.Model, error) {
	m, err := OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Inspect(ctx)
}

// Inspect describes the model. It reads the graph, and weights only where two may be equal.
func (m *Model) Inspect(ctx context.Context) (*inspection.Model, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return inspect.Model(ctx, m.file, inspect.Options{Workers: Limits{}.threads()})
}
