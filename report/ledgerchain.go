package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A chain links the rows of a ledger: in a pipeline a later step replaces tensors
// that an earlier one made, and the last ones are stored in the result.
type chain struct {
	rows   []pass.Row
	takers map[*ir.Tensor][]int // changed rows, by the tensor before the step
	roots  []*root
	stored *index
}

// A root is a weight of the source and its rows, in order.
type root struct {
	before *ir.Tensor
	rows   []int // with the weight itself before the step
	all    []int // those, and the rows of payloads that they made
	extent extent
}

func newChain(ctx context.Context, rows []pass.Row, result *ir.Model) (*chain, error) {
	stored, err := newIndex(ctx, result)
	if err != nil {
		return nil, err
	}
	c := &chain{rows: rows, takers: map[*ir.Tensor][]int{}, stored: stored}
	type origin struct {
		*root
		role pass.Role
	}
	of := make(map[*ir.Tensor]origin, len(rows))
	for i, r := range rows {
		if r.Before == nil {
			continue
		}
		own := of[r.Before]
		// A tensor that no earlier row made is a weight of the source.
		if own.root == nil {
			own = origin{&root{before: r.Before}, pass.Payload}
			of[r.Before] = own
			c.roots = append(c.roots, own.root)
		}
		if own.before == r.Before {
			own.rows = append(own.rows, i)
		}
		// Rows of scales and indices are not about the elements of the weight.
		if own.role == pass.Payload {
			own.all = append(own.all, i)
		}
		if r.Status != pass.Changed {
			continue
		}
		c.takers[r.Before] = append(c.takers[r.Before], i)
		for _, p := range r.After {
			if of[p.Tensor].root == nil {
				of[p.Tensor] = origin{own.root, p.Role}
			}
		}
	}
	seen := map[*ir.Tensor]bool{}
	for _, o := range c.roots {
		o.extent = c.extent(o, seen)
	}
	return c, nil
}

// taker is the row that replaced a tensor of row i, or -1.
func (c *chain) taker(t *ir.Tensor, i int) int {
	for _, j := range c.takers[t] {
		if j > i {
			return j
		}
	}
	return -1
}

func (c *chain) superseded(i int) bool {
	return slices.ContainsFunc(c.rows[i].After, func(p pass.Part) bool { return c.taker(p.Tensor, i) >= 0 })
}

// opened is p's tensor in the result, or the recipe for it if the result has none:
// then a later step replaced it, or it is in an attribute.
func (c *chain) opened(p pass.Part, i int) *ir.Tensor {
	if c.taker(p.Tensor, i) < 0 {
		if t := c.stored.find(p); t != nil {
			return t
		}
	}
	return p.Tensor
}

// afterStep is the weight after row i, nil if it cannot be restored.
func (c *chain) afterStep(i int) *ir.Tensor {
	return c.restore(i, func(p pass.Part) *ir.Tensor { return c.opened(p, i) })
}

// atEnd is the weight before row i, as restored from the result of all steps.
func (c *chain) atEnd(i int) *ir.Tensor {
	return c.restore(i, func(p pass.Part) *ir.Tensor {
		if j := c.taker(p.Tensor, i); j >= 0 {
			return c.atEnd(j)
		}
		return c.opened(p, i)
	})
}

func (c *chain) restore(i int, part func(pass.Part) *ir.Tensor) *ir.Tensor {
	r := c.rows[i]
	if r.Restore == nil {
		return nil
	}
	ts := make([]*ir.Tensor, len(r.After))
	for k, p := range r.After {
		if ts[k] = part(p); ts[k] == nil {
			return nil
		}
	}
	return r.Restore(ts)
}

// An extent is the bytes of a weight in the result.
type extent struct {
	stored int64 // bytes in the files
	held   int64 // bytes once a runtime has loaded them
}

func (f *extent) add(g extent) {
	f.stored += g.stored
	f.held += g.held
}

// held is the runtime memory of the tensor t of a part of row i.
func (c *chain) held(i int, p pass.Part, t *ir.Tensor) int64 {
	if f := c.stored.loaded[t]; f != nil && !f.unknown {
		return f.total()
	}
	if p.Folded != 0 {
		return max(0, p.Folded)
	}
	return c.rows[i].Form.RuntimeBytes(t)
}

// dense is the runtime memory of the weight of row i that is folded from its payload and others: in the type that its
// consumers read, or in its own where none of its parts is known to be the payload, as in expressions of a model that
// another run wrote.
func (c *chain) dense(i int) int64 {
	r, n, payload := c.rows[i], int64(0), false
	for _, p := range r.After {
		if p.Role != pass.Payload {
			continue
		}
		payload = true
		if f := c.stored.loaded[c.opened(p, i)]; f != nil {
			n = max(n, f.dense(r.Before))
		} else {
			n = max(n, r.Before.Bytes())
		}
	}
	if !payload {
		return r.Before.Bytes()
	}
	return n
}

// left is the extent in the result of the tensors of row i, without those in seen, which
// count already. The form decides the held bytes where the graph does not.
func (c *chain) left(i int, seen map[*ir.Tensor]bool) extent {
	var f extent
	r, folded, unfolded := c.rows[i], false, int64(0)
	for _, p := range r.After {
		if j := c.taker(p.Tensor, i); j >= 0 {
			f.add(c.left(j, seen))
			continue
		}
		t := c.opened(p, i)
		if seen[t] {
			continue
		}
		seen[t] = true
		f.stored += t.Bytes()
		if p.Value != nil { // not in an attribute
			f.held += c.held(i, p, t)
			if of := c.stored.loaded[t]; of != nil && p.Role != pass.Payload {
				unfolded += of.unfolded()
			}
		}
		folded = true
	}
	if r.Form.Dense && folded {
		f.held = c.dense(i) + unfolded
	}
	return f
}

// extent sums up over the rows with o's tensor before the step.
func (c *chain) extent(o *root, seen map[*ir.Tensor]bool) extent {
	var f extent
	changed := false
	for _, i := range o.rows {
		if c.rows[i].Status == pass.Changed {
			changed = true
			f.add(c.left(i, seen))
		}
	}
	if !changed || c.stays(o, seen) {
		b := o.before.Bytes()
		held := b
		if f := c.stored.loaded[c.original(o)]; f != nil && !f.unknown {
			held = f.total()
		}
		f.add(extent{b, held})
	}
	return f
}

// stays reports whether the result has the original of a changed weight, too: some
// consumers do not support the new form.
func (c *chain) stays(o *root, seen map[*ir.Tensor]bool) bool {
	t := c.original(o)
	return t != nil && alike(t.Spec, o.before.Spec) && !seen[t]
}

// original is the result's constant of the name of o, nil if it has none.
func (c *chain) original(o *root) *ir.Tensor {
	r := c.rows[o.rows[0]]
	return c.stored.scoped[scoped{r.Scope, r.Tensor}]
}
