package quantize

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// precheck, where the pipeline asks for it, reads ws and leaves out, with their rows,
// those whose values no scale can stand for.
func precheck[W any](c *pass.Context, ws []W, of func(W) (*ir.Value, *coding)) ([]W, error) {
	if !c.Precheck {
		return ws, nil
	}
	unfit := make([]*pass.Unfit, len(ws))
	err := c.Parallel(len(ws), func(ctx context.Context, i int) error {
		_, cd := of(ws[i])
		in, err := c.Eval.Open(ctx, cd.t)
		if err != nil {
			return err
		}
		_, err = measure(ctx, in, cd.t, cd.g, cd.s)
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
