package layerwise

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// Keep keeps what a method computed for a weight of that name until the model is written, larger data in temporary files of eval. It returns
// a tensor of bytes for each, whose source is a Span.
func Keep(ctx context.Context, eval *ir.Eval, name string, data ...[]byte) ([]*ir.Tensor, error) {
	r := &ir.Recipe{Name: "layer by layer", Run: func(_ context.Context, _ []io.ReaderAt, out []io.Writer) error {
		for i, b := range data {
			if _, err := out[i].Write(b); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, b := range data {
		r.Out = append(r.Out, ir.Spec{Name: name, DType: ir.Uint8, Shape: []int64{int64(len(b))}})
	}
	ts := r.Derive()
	for i, t := range ts {
		at, err := eval.Open(ctx, t)
		if err != nil {
			return nil, err
		}
		ts[i] = &ir.Tensor{Spec: t.Spec, Source: ir.Span{R: at}}
	}
	data = nil // r may live as long as its results
	return ts, nil
}
