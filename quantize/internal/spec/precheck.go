package spec

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Precheck reads, in runs with that option, ws and skips, with ledger rows, those whose values no scale represents.
func Precheck[W any](ctx context.Context, s *pass.Step, ws []W, of func(W) (*ir.Value, Encoding)) ([]W, error) {
	if !s.Env.Precheck {
		return ws, nil
	}
	unfit := make([]*pass.Unfit, len(ws))
	err := pass.Parallel(ctx, s.Env.Workers, len(ws), func(ctx context.Context, i int) error {
		_, e := of(ws[i])
		in, err := s.Eval.Open(ctx, e.Recipe().In[0])
		if err != nil {
			return err
		}
		err = e.Check(ctx, in)
		// Of this weight alone: the others go on. Rows follow in the order of weights, not of workers.
		if errors.As(err, &unfit[i]) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var fit []W
	for i, w := range ws {
		if unfit[i] == nil {
			fit = append(fit, w)
			continue
		}
		v, _ := of(w)
		s.Ledger.Skip(v, pass.Consumers(v), unfit[i].Reason)
	}
	return fit, nil
}

// Check computes the scales of the weight and returns a *pass.Unfit if they do not represent its values.
func (c *PerChannel) Check(ctx context.Context, in io.ReaderAt) error {
	_, err := ObserveQParams(ctx, in, c.Weight, c.Layout, c.Spec)
	return err
}

// Same reports whether e quantizes an equal weight to equal values.
func (c *PerChannel) Same(e Encoding) bool {
	o, ok := e.(*PerChannel)
	return ok && c.Layout == o.Layout && c.Spec == o.Spec && c.Transpose == o.Transpose &&
		slices.Equal(c.ScaleShape, o.ScaleShape) && slices.Equal(c.Shape, o.Shape)
}
