package engine

import (
	"slices"
	"strconv"
	"sync"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A planCache holds the plans of one program, the latest first, each with the instance of its last run.
type planCache struct {
	mu      sync.Mutex
	entries []*planEntry
}

type planEntry struct {
	types string
	plan  *plan
	idle  *instance
}

// exec runs p on memory of its own.
func (p *program) exec(r *execution, args []*ir.Array, fetch map[int]bool) (map[int]*ir.Array, error) {
	e, in, err := p.take(r, args)
	if err != nil {
		return nil, err
	}
	defer p.plans.put(e, in, r.account)
	return in.run(r, args, fetch)
}

// take returns an instance for arguments of these types.
func (p *program) take(r *execution, args []*ir.Array) (*planEntry, *instance, error) {
	e, err := p.plans.get(p, args, r)
	if err != nil {
		return nil, nil, err
	}
	p.plans.mu.Lock()
	in := e.idle
	e.idle = nil
	p.plans.mu.Unlock()
	arena := r.arena
	// The arena of the main graph is in use then.
	if p.names == nil { // a subgraph, during a run of the main graph
		arena = nil
	}
	if in != nil && arena.has(in.arena) {
		return e, in, nil
	}
	// Its arena was replaced by a larger one for another session.
	if in != nil {
		r.account.Release(int64(len(in.arena)))
	}
	if idle := p.plans.reuse(e); idle != nil && arena.has(idle.arena) {
		idle.rebind(e.plan)
		return e, idle, nil
	} else if idle != nil {
		r.account.Release(int64(len(idle.arena)))
	}
	if err := r.account.Take(e.plan.memory.Size); err != nil {
		return nil, nil, e.plan.wrapPeak(err)
	}
	return e, e.plan.bind(arena.take(e.plan.memory.Size), r.pool), nil
}

func (c *planCache) get(p *program, args []*ir.Array, r *execution) (*planEntry, error) {
	types := typesOf(args)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.entries {
		if e.types == types {
			// The latest first: the last one is dropped when there are too many.
			copy(c.entries[1:i+1], c.entries[:i])
			c.entries[0] = e
			return e, nil
		}
	}
	var before *plan
	if len(c.entries) > 0 {
		before = c.entries[0].plan
	}
	// Without data, as the plan is for all inputs of these types.
	pl, err := p.newPlan(unknown(args), before, r.pool, r.account)
	if err != nil {
		return nil, err
	}
	e := &planEntry{types: types, plan: pl}
	c.entries = append([]*planEntry{e}, c.entries...)
	for len(c.entries) > keptPlans {
		c.entries[keptPlans].free(r.account)
		c.entries = c.entries[:keptPlans]
	}
	return e, nil
}

// reuse takes an idle instance whose plan has the offsets of e's; nil if there is none.
func (c *planCache) reuse(e *planEntry) *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.entries {
		if o.idle != nil && o.plan.capacity == e.plan.capacity {
			idle := o.idle
			o.idle = nil
			return idle
		}
	}
	return nil
}

// put keeps an instance for the next run with this plan.
func (c *planCache) put(e *planEntry, in *instance, account *op.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// At once, so that arrays of the caller are not kept until the next run.
	in.reset()
	if e.idle == nil && slices.Contains(c.entries, e) {
		e.idle = in
	} else {
		account.Release(int64(len(in.arena)))
	}
}

// idle is the size of the arenas of idle instances.
func (c *planCache) idle() (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.idle != nil {
			bytes += int64(len(e.idle.arena))
		}
	}
	return bytes
}

// free releases idle instances, unless the cache is in use: memory may be required while a plan is made.
func (c *planCache) free(account *op.Account) {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.free(account)
	}
}

// free releases the idle instance.
func (e *planEntry) free(account *op.Account) {
	if e.idle != nil {
		account.Release(int64(len(e.idle.arena)))
		e.idle = nil
	}
}

// typesOf identifies the types of args.
func typesOf(args []*ir.Array) string {
	// By numbers instead of fmt: formatting took 2 % of the time of a token of a small GPT-2, whose sizes differ in
	// each run; this takes 0.3 %.
	b := make([]byte, 0, 32*len(args))
	for _, a := range args {
		switch {
		case a == nil:
			b = append(b, '?')
		case a.Kind != ir.Dense:
			b = append(b, 'k')
			b = strconv.AppendInt(b, int64(a.Kind), 10)
		default:
			b = strconv.AppendInt(b, int64(a.DType), 10)
			for _, n := range a.Shape {
				b = append(b, ',')
				b = strconv.AppendInt(b, n, 10)
			}
		}
		b = append(b, ';')
	}
	return string(b)
}

// unknown are the types of args without their data.
func unknown(args []*ir.Array) []*ir.Array {
	out := make([]*ir.Array, len(args))
	for i, a := range args {
		if a != nil && a.Kind == ir.Dense {
			out[i] = &ir.Array{DType: a.DType, Shape: slices.Clone(a.Shape)}
		}
	}
	return out
}
