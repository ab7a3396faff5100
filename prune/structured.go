package prune

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// wholeParts are the parts of a weight, channels or blocks, that are pruned whole.
type wholeParts struct {
	pruned  []bool
	count   int64
	trouble pass.Reason // why none is pruned
}

func (c *wholeParts) reason() pass.Reason { return c.trouble }

// parts are the parts of a weight and those that are chosen.
type parts interface {
	reason() pass.Reason
	// detail is the number of pruned parts, for the ledger.
	detail() string
	// zero zeroes the pruned parts in elements of a type from an index on; see view.
	zero(dt ir.DType) func(p []byte, first int64) error
}

// pruneParts zeroes the parts that choose chooses, in parallel, each weight by one worker so that its sums have one
// order.
func pruneParts[P parts](ctx context.Context, step *pass.Step, ws []*weight,
	choose func(context.Context, *pass.Step, *buffers, *weight) (P, error)) error {
	s, all := &buffers{}, make([]P, len(ws))
	err := pass.Parallel(ctx, step.Env.Workers, len(ws), func(ctx context.Context, i int) (err error) {
		all[i], err = choose(ctx, step, s, ws[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, w := range ws {
		if reason := all[i].reason(); !reason.None() {
			w.skip(step, reason)
			continue
		}
		w.replace(step, pass.Reason{Code: pass.Pruned, Detail: all[i].detail()}, func(in io.ReaderAt) io.ReaderAt {
			return &view{in, w.before.DType.Bits() / 8, all[i].zero(w.before.DType)}
		})
	}
	return nil
}
