package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// CheckWritten evaluates the bounds of all weights on the result, which was opened from its files. A weight that breaks
// one is an *ir.Bug that names it. It returns the rows with notes on what the checks find. Memory is a few blocks of
// elements for each worker, and a scale group's range each. If other processes check weights and their results are not
// known yet, it returns an *ir.Elsewhere.
func CheckWritten(ctx context.Context, in Input) ([]pass.Row, error) {
	c, err := newChain(ctx, in.Rows, in.Result.IR)
	if err != nil {
		return nil, err
	}
	type of struct{ weight, payload *ir.Tensor }
	var checks []*writtenWeight
	seen := map[of]*writtenWeight{}
	for i, r := range c.rows {
		if r.Status != pass.Changed || r.Bound == nil || c.superseded(i) {
			continue
		}
		// The units of a journal have different names, and tensors of several graphs may not.
		w := &writtenWeight{row: &c.rows[i], unit: fmt.Sprintf("bounds %d, %s: tensor %q", i, r.Method, r.Tensor)}
		for _, p := range r.After {
			w.parts = append(w.parts, c.opened(p, i))
		}
		key := of{r.Bound.Of, w.parts[0]}
		// Rows of tied weights have one tensor, which is read once.
		if seen[key] == nil {
			seen[key] = w
			checks = append(checks, w)
		}
		seen[key].rows = append(seen[key].rows, i)
	}
	// Large ones first, so that no worker is left alone with one in the end.
	slices.SortStableFunc(
		checks,
		func(a, b *writtenWeight) int { return int(b.row.Bound.Of.Elems() - a.row.Bound.Of.Elems()) },
	)
	missing := make([]error, len(checks))
	err = pass.Parallel(ctx, in.Workers, len(checks), func(ctx context.Context, i int) error {
		w := checks[i]
		text, err := ir.Once(
			ctx,
			in.Journal,
			w.unit,
			in.Mine == nil || in.Mine(w.row.Bound.Tensors(w.parts)[0]),
			func() ([]byte, error) {
				if err := w.check(ctx, in.Eval); err != nil {
					return nil, err
				}
				return json.Marshal(w.notes)
			},
		)
		// What another process has not computed yet does not keep this one from the rest.
		if _, ok := ir.ElsewhereIn(err); ok {
			missing[i] = err
			return nil
		}
		if err != nil {
			return err
		}
		return bounded.JSON(text, &w.notes)
	})
	noted := slices.Clone(in.Rows)
	for _, w := range checks {
		for _, i := range w.rows {
			for _, n := range w.notes {
				if !slices.Contains(noted[i].Notes, n) { // as a rejected result is checked twice
					noted[i].Notes = append(slices.Clip(noted[i].Notes), n)
				}
			}
		}
	}
	return noted, errors.Join(err, errors.Join(missing...))
}

// A writtenWeight is a weight with its parts in the result.
type writtenWeight struct {
	row   *pass.Row
	unit  string // of a journal
	parts []*ir.Tensor
	rows  []int         // with this weight and these parts
	notes []pass.Reason // on what the check found
}

// check streams the weight and the tensors that bound it once, a block at a time.
func (w *writtenWeight) check(ctx context.Context, e *ir.Eval) (err error) {
	b := w.row.Bound
	r, err := e.Open(ctx, b.Of)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	n := min(b.Of.Elems(), compareBlock)
	of := newBlock(b.Of.DType, n)
	var from []io.Reader
	var blocks []*block
	defer func() { // before the pipes are closed, writers may wait for readers
		for _, p := range from {
			p.(*io.PipeReader).CloseWithError(context.Canceled)
		}
		if failed := g.Wait(); err == nil && !errors.Is(failed, context.Canceled) {
			err = failed
		}
	}()
	for _, t := range b.Tensors(w.parts) {
		p, to := io.Pipe()
		from, blocks = append(from, p), append(blocks, newBlock(t.DType, n))
		g.Go(func() (err error) {
			defer func() { to.CloseWithError(err) }()
			defer ir.Guard(&err)
			return w.unread(stream(ctx, e, t, to))
		})
	}
	holds, err := b.New(ctx, r, func(n pass.Reason) { w.notes = append(w.notes, n) })
	if err != nil {
		return err
	}
	y := make([][]float32, len(blocks))
	for first := int64(0); first < b.Of.Elems(); first += n {
		some := int(min(n, b.Of.Elems()-first))
		raw := of.raw[:some*of.size]
		if err := ir.ReadFull(r, raw, first*int64(of.size)); err != nil {
			return err
		}
		x, err := of.floats(raw)
		if err != nil {
			return err
		}
		for i, k := range blocks {
			raw := k.raw[:some*k.size]
			if _, err := io.ReadFull(from[i], raw); err != nil {
				return err
			}
			if y[i], err = k.floats(raw); err != nil {
				return err
			}
		}
		if why := holds(x, y); why != "" {
			return w.broken(why)
		}
	}
	if why := holds(nil, make([][]float32, len(blocks))); why != "" {
		return w.broken(why)
	}
	return nil
}

// unread is an error of restoring the weight from what was written: a bug where the files can be read.
func (w *writtenWeight) unread(err error) error {
	_, elsewhere := ir.ElsewhereIn(err)
	var bug *ir.Bug
	switch {
	case err == nil,
		elsewhere,
		errors.As(err, new(syscall.Errno)),
		errors.As(err, new(*fs.PathError)),
		errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &bug):
		return err
	}
	return w.broken(err.Error())
}

func (w *writtenWeight) broken(why string) error {
	return fmt.Errorf(
		"%s: %w",
		w.row.Method,
		ir.Bugf("tensor %q is not what was written for it: %s", w.row.Tensor, why),
	)
}
