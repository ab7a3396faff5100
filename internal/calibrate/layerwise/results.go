package layerwise

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Keep keeps what a method computed for a weight of that name until the model is written, larger data in temporary
// files of eval. It returns a tensor of bytes for each, whose source is a Span.
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
		r.Out = append(r.Out, specOf(name, int64(len(b))))
	}
	ts := r.Derive()
	for i, t := range ts {
		// Which computes the recipe, into memory or a temporary file: data itself need not stay.
		at, err := eval.Open(ctx, t)
		if err != nil {
			return nil, err
		}
		ts[i] = &ir.Tensor{Spec: t.Spec, Source: ir.Span{R: at}}
	}
	data = nil // r may live as long as its results
	return ts, nil
}

func specOf(name string, n int64) ir.Spec {
	return ir.Spec{Name: name, DType: ir.Uint8, Shape: []int64{n}}
}

// HasResult reports whether an interrupted run left the result of the step for a weight of that name.
func HasResult(s *pass.Step, name string) bool {
	if s.Env.Journal == nil {
		return false
	}
	_, ok := s.Env.Journal.Result(s.Unit(name))
	return ok
}

// Once is Keep of what compute returns for a weight of that name, or what an interrupted run left of it.
func Once(ctx context.Context, s *pass.Step, name string, compute func() ([][]byte, error)) ([]*ir.Tensor, error) {
	j := s.Env.Journal
	if j == nil {
		data, err := compute()
		if err != nil {
			return nil, err
		}
		return Keep(ctx, s.Eval, name, data...)
	}
	parts, ok := j.Result(s.Unit(name))
	if !ok {
		data, err := compute()
		if err != nil {
			return nil, err
		}
		if parts, err = j.Add(ctx, s.Unit(name), data...); err != nil {
			return nil, err
		}
	}
	ts := make([]*ir.Tensor, len(parts))
	for i, p := range parts {
		ts[i] = &ir.Tensor{Spec: specOf(name, p.Size()), Source: ir.Span{R: p}}
	}
	return ts, nil
}
