package inspect

import (
	"context"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/inspection"
)

// runtimes are the bytes of weights in ONNX Runtime and, as planned without reading them, in the embedded engine, unless it does not support m.
func runtimes(ctx context.Context, m *ir.Model) ([]inspection.Runtime, error) {
	n, err := report.LoadedBytes(ctx, m)
	if err != nil {
		return nil, err
	}
	list := []inspection.Runtime{{Name: pass.MeasuredRuntime, Bytes: n}}
	e, err := engine.Open(ctx, m, engine.Options{Workers: 1, PlanOnly: true})
	if err != nil {
		return list, ctx.Err()
	}
	defer e.Close()
	return append(list, inspection.Runtime{Name: "embedded engine, planned", Bytes: e.ConstantBytes()}), nil
}
