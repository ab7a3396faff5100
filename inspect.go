package mcompress

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/inspect"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/inspection"
)

// InspectOptions are the options of Inspect.
type InspectOptions struct {
	Values bool   // read all weights and count zeros
	Limits Limits // of which Workers is used
}

// Inspect describes the model at a path or URL.
func Inspect(ctx context.Context, path string, o InspectOptions) (*inspection.Model, error) {
	m, err := OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Inspect(ctx, o)
}

// Inspect describes the model. It reads the graph, and weights only where two may be equal, or all with Values.
func (m *Model) Inspect(ctx context.Context, o InspectOptions) (*inspection.Model, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := o.Limits.check(); err != nil {
		return nil, err
	}
	facts, err := inspect.Model(ctx, m.file, inspect.Options{Workers: o.Limits.threads(), Values: o.Values})
	if err != nil {
		return nil, withModel(m.file.Path, err)
	}
	return facts, nil
}

// Text writes the model in ONNX's text syntax. Weights are read one after the other.
func (m *Model) Text(ctx context.Context, w io.Writer) error {
	if err := m.check(); err != nil {
		return err
	}
	eval := ir.NewEval("")
	defer eval.Close()
	return m.file.Model.Text(ctx, eval, w)
}

// Path is the path of the model, a URL without its query, or the name that Read was called with.
func (m *Model) Path() string {
	if m.check() != nil {
		return ""
	}
	return m.file.Path
}
