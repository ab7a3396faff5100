package report

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A chain is a ledger whose rows know each other: in a pipeline a later step takes
// over the tensors that an earlier one made, and what is left of them in the end
// lies in the result.
type chain struct {
	rows   []pass.Row
	takers map[*ir.Tensor][]int // changed rows, by the tensor they found
	roots  []*root
	stored *index
}

// A root is a weight of the source and the rows that speak of it, in order.
type root struct {
	before *ir.Tensor
	rows   []int // that found before itself
	all    []int // those, and the ones that found a payload which they made
	fate   fate
}

func link(rows []pass.Row, result *ir.Model) *chain {
	c := &chain{rows: rows, takers: map[*ir.Tensor][]int{}, stored: newIndex(result)}
	type origin struct {
		*root
		role pass.Role
	}
	of := map[*ir.Tensor]origin{}
	for i, r := range rows {
		if r.Before == nil {
			continue
		}
		own := of[r.Before]
		if own.root == nil {
			own = origin{&root{before: r.Before}, pass.Payload}
			of[r.Before] = own
			c.roots = append(c.roots, own.root)
		}
		if own.before == r.Before {
			own.rows = append(own.rows, i)
		}
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
		o.fate = c.fate(o, seen)
	}
	return c
}

// taker is the row that took over a tensor which row i made, or -1.
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
// then a later step replaced it, or it lies in an attribute.
func (c *chain) opened(p pass.Part, i int) *ir.Tensor {
	if c.taker(p.Tensor, i) < 0 {
		if t := c.stored.find(p); t != nil {
			return t
		}
	}
	return p.Tensor
}

// afterStep is the weight as row i left it, nil if that cannot be made.
func (c *chain) afterStep(i int) *ir.Tensor {
	return c.restore(i, func(p pass.Part) *ir.Tensor { return c.opened(p, i) })
}

// atEnd is the weight that row i found, as all steps together left it.
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

// A fate is what is left of a weight in the result.
type fate struct {
	stored int64 // bytes in the files
	held   int64 // bytes once a runtime has loaded them
	listed int64 // held bytes of the same tensors in the result's inventory, which knows no forms
}

func (f *fate) add(g fate) {
	f.stored += g.stored
	f.held += g.held
	f.listed += g.listed
}

// left is what is left in the end of what row i made; what is in seen was counted
// already. The first form on the way that the runtime expands decides what it holds.
func (c *chain) left(i int, seen map[*ir.Tensor]bool) fate {
	var f fate
	r := c.rows[i]
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
		if p.Value != nil {
			f.add(fate{t.Bytes(), r.Form.Held(t), t.Bytes()})
			continue
		}
		// Tensors in an attribute are listed as the one that they expand to.
		f.stored += t.Bytes()
		f.listed = r.Before.Bytes()
	}
	if r.Form.Dense && f.stored > 0 {
		f.held = r.Before.Bytes()
	}
	return f
}

// fate sums up over the rows that found o's tensor as it was.
func (c *chain) fate(o *root, seen map[*ir.Tensor]bool) fate {
	var f fate
	changed := false
	for _, i := range o.rows {
		if c.rows[i].Status == pass.Changed {
			changed = true
			f.add(c.left(i, seen))
		}
	}
	if !changed || c.stays(o, seen) {
		b := o.before.Bytes()
		f.add(fate{b, b, b})
	}
	return f
}

// stays reports whether the result holds a changed weight as it was, too: not all of
// its readers could take the other form.
func (c *chain) stays(o *root, seen map[*ir.Tensor]bool) bool {
	r := c.rows[o.rows[0]]
	t := c.stored.scoped[scoped{r.Scope, r.Tensor}]
	return t != nil && alike(t.Spec, o.before.Spec) && !seen[t]
}

// expansion is what a runtime holds beyond the result's inventory.
func (c *chain) expansion() int64 {
	n := int64(0)
	for _, o := range c.roots {
		n += o.fate.held - o.fate.listed
	}
	return n
}
