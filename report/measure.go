package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A pair is a weight before and after; the same tensor twice where only zeros
// are counted.
type pair struct{ ref, got *ir.Tensor }

// A task is one pair to stream and the destinations of its figures.
type task struct {
	pair
	unit string    // of a journal
	row  *pass.Row // about the tensor
	step bool      // of one step, not of all
	into []*Figures
}

// String names the task in errors.
func (t *task) String() string {
	if t.step {
		return fmt.Sprintf("%s: tensor %q", t.row.Method, t.row.Tensor)
	}
	return fmt.Sprintf("tensor %q", t.row.Tensor)
}

// measure fills in figures: each step's output compared with its input, and each weight of the
// result compared with the source. Every distinct pair is streamed once.
func (r *Report) measure(ctx context.Context, in Input, c *chain) error {
	var tasks []*task
	known := make(map[pair]*task, len(c.rows))
	add := func(ref, got *ir.Tensor, row *pass.Row, step bool, into *Figures) {
		if got == nil || !wholeBytes(ref.DType) || !wholeBytes(got.DType) {
			return
		}
		p := pair{ref, got}
		t := known[p]
		if t == nil {
			t = &task{pair: p, row: row, step: step}
			known[p] = t
			tasks = append(tasks, t)
		}
		t.into = append(t.into, into)
	}
	steps := make([]*ir.Tensor, len(c.rows))
	for i := range c.rows {
		row := &c.rows[i]
		if row.Before == nil {
			continue
		}
		steps[i] = row.Before
		if row.Status == pass.Changed {
			steps[i] = c.afterStep(i)
		}
		add(row.Before, steps[i], row, true, &r.Ledger[i].Figures)
	}
	pairs := make([]pair, len(c.roots))
	counted := make([]struct{ before, after Figures }, len(c.roots)) // of weights with fewer elements than before
	for k, o := range c.roots {
		i := c.firstChange(o)
		got := steps[i]
		if c.superseded(i) {
			got = c.atEnd(i)
		}
		add(o.before, got, &c.rows[i], false, &r.Weights[k].Figures)
		pairs[k] = pair{o.before, got}
		if end := c.smaller(i); end != nil {
			add(o.before, o.before, &c.rows[i], false, &counted[k].before)
			add(end, end, &c.rows[i], false, &counted[k].after)
		}
	}
	if err := run(ctx, in, tasks); err != nil {
		return err
	}
	for k, z := range counted {
		if w := &r.Weights[k]; z.after.Sparsity != nil {
			w.was, w.is, w.Sparsity = z.before.was, z.after.is, z.after.Sparsity
		}
	}
	var err error
	r.Histograms, err = histograms(ctx, in, r.Weights, pairs)
	return err
}

// smaller is the stored weight that has fewer elements since row i, such as without pruned channels, after later rows;
// nil for others, and where it is not stored as a float.
func (c *chain) smaller(i int) *ir.Tensor {
	row := c.rows[i]
	if row.Status != pass.Changed || len(row.After) != 1 || row.Restore != nil && row.Form != pass.Smaller {
		return nil
	}
	if j := c.taker(row.After[0].Tensor, i); j >= 0 {
		if end := c.smaller(j); end != nil {
			return end
		}
		return c.atEnd(j)
	}
	if t := c.opened(row.After[0], i); t.DType.IsFloat() {
		return t
	}
	return nil
}

// firstChange is the row that first changed o, or else the first that speaks of it.
func (c *chain) firstChange(o *root) int {
	for _, i := range o.rows {
		if c.rows[i].Status == pass.Changed {
			return i
		}
	}
	return o.rows[0]
}

func run(ctx context.Context, in Input, tasks []*task) error {
	for i, t := range tasks {
		t.unit = fmt.Sprintf("figures %d, %s", i, t)
	}
	// Large tensors first, so that no worker is left alone with one in the end.
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(b.ref.Elems(), a.ref.Elems()) })
	missing := make([]error, len(tasks))
	err := pass.Parallel(ctx, in.Workers, len(tasks), func(ctx context.Context, i int) error {
		err := tasks[i].run(ctx, in)
		// As in CheckWritten, the others go on.
		if _, ok := ir.ElsewhereIn(err); ok {
			missing[i] = err
			return nil
		}
		return err
	})
	return cmp.Or(err, cmp.Or(missing...))
}

// run measures the pair, unless its figures are known.
func (t *task) run(ctx context.Context, in Input) error {
	text, err := ir.Once(ctx, in.Journal, t.unit, in.Mine == nil || in.Mine(t.got), func() ([]byte, error) {
		f, err := compare(ctx, in.Eval, t.pair, nil)
		if err != nil {
			return nil, fmt.Errorf("report: %s: %w", t, err)
		}
		return json.Marshal(keptFigures{f, f.was.counts(), f.is.counts()})
	})
	if err != nil {
		return err
	}
	var m keptFigures
	if err := bounded.JSON(text, &m); err != nil {
		return err
	}
	m.was, m.is = zerosOf(m.Was), zerosOf(m.Is)
	for _, to := range t.into {
		*to = m.Figures
	}
	return nil
}

// keptFigures are figures in a journal.
type keptFigures struct {
	Figures
	Was, Is [2]int64
}

func (z zeros) counts() [2]int64 { return [2]int64{z.zeros, z.elems} }

func zerosOf(counts [2]int64) zeros { return zeros{counts[0], counts[1]} }
