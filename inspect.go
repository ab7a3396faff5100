package mcompress

import (
	"context"

	"github.com/mcompress/mcompress/internal/inspect"
)

// An Inspection is the content of a model: files, operators, element types, and each constant with its size and consumers.
type Inspection = inspect.Facts

// Inspect describes the model at path.
func Inspect(ctx context.Context, path string) (*Inspection, error) {
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Inspect(ctx)
}

// Inspect describes the model. It reads the graph, and weights only where two may be equal.
func (m *Model) Inspect(ctx context.Context) (*Inspection, error) {
	return inspect.Model(ctx, m.file, inspect.Options{Workers: (&settings{}).threads()})
}
