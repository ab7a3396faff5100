package spec

import (
	"context"
	"errors"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// precheck, where the pipeline asks for it, reads ws and leaves out, with their rows,
// those whose values no scale can stand for.
func Precheck[W any](c *pass.Context, ws []W, of func(W) (*ir.Value, *Encoding)) ([]W, error) {
	if !c.Precheck {
		return ws, nil
	}
	unfit := make([]*pass.Unfit, len(ws))
	err := c.Parallel(len(ws), func(ctx context.Context, i int) error {
		_, cd := of(ws[i])
		in, err := c.Eval.Open(ctx, cd.Weight)
		if err != nil {
			return err
		}
		err = cd.Check(ctx, in)
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
		c.Skip(v, pass.Readers(v), unfit[i].Reason)
	}
	return fit, nil
}

// check reads the weight and returns an *pass.Unfit if no scales can stand for its values.
func (c *Encoding) Check(ctx context.Context, in io.ReaderAt) error {
	if c.Blocks != nil {
		return c.runBlocks(ctx, []io.ReaderAt{in}, []io.Writer{io.Discard, io.Discard, io.Discard})
	}
	_, err := ObserveQParams(ctx, in, c.Weight, c.Layout, c.Spec)
	return err
}
