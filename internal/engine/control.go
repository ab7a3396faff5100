package engine

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// control is the list of control-flow operators. The engine itself runs them, so these rows have neither Shape nor Run.
func control() []op.Op {
	return []op.Op{
		{Type: "If", Since: 1},
		{Type: "Loop", Since: 1},
		{Type: "Scan", Since: 8},
		{Type: "SequenceMap", Since: 17},
	}
}

// planControl plans a step with subgraphs. If the types inside a subgraph follow from the step's inputs, its arena is
// scratch memory of the step; else it is planned at run time.
func (pl *planner) planControl(i int, s *step, in []*ir.Array) error {
	var specs []ir.Spec
	var err error
	switch s.ID.Type {
	case "If":
		specs, err = pl.planIf(i, s, in)
	case "Loop":
		specs, err = pl.planLoop(i, s, in)
	case "Scan":
		specs, err = pl.planScan(i, s, in)
	default:
		err = op.ErrUnknown
	}
	// Scratch memory of another branch may be planned already.
	if err != nil { // an invalid branch may never run: report it at run time
		pl.scratch[i], pl.bodies[i] = 0, nil
		return nil
	}
	return pl.declare(i, s, specs)
}

// runControl runs a step with subgraphs.
func (in *instance) runControl(r *execution, i int, s *step, c *op.Call) error {
	var out []*ir.Array
	var err error
	b := &bodies{in: in, r: r, i: i, s: s, c: c}
	defer func() { b.drop(b.heldBytes) }()
	switch s.ID.Type {
	case "If":
		out, err = b.branch()
	case "Loop":
		out, err = b.loop()
	case "Scan":
		out, err = b.scan()
	case "SequenceMap":
		out, err = b.sequenceMap()
	case "FlexAttention":
		out, err = b.flexAttention()
	}
	if err != nil {
		return s.wrap(err)
	}
	// Before the outputs are counted: they would count twice, and a result of half of the limit would be refused.
	b.drop(b.heldBytes) // what is an output is counted for its slot
	for k, o := range s.out {
		if o == absent || !s.Consumed[k] {
			continue
		}
		if k >= len(out) || out[k] == nil {
			return s.wrap(fmt.Errorf("output %d was not computed", k))
		}
		if in.plan.modes[i] != placed {
			if err := in.store(s, o, out[k]); err != nil {
				return err
			}
		} else if copy(in.values[o].Data, out[k].Data) != len(out[k].Data) ||
			len(out[k].Data) != len(in.values[o].Data) {
			return s.wrap(fmt.Errorf("output %d is %s, planned as %s", k, out[k], in.values[o]))
		}
	}
	return nil
}

// bodies is one execution of a step with subgraphs.
type bodies struct {
	in *instance
	r  *execution
	i  int
	s  *step
	c  *op.Call

	heldBytes int64 // of results of subgraphs in the account
}

// drop discounts n bytes of results.
func (b *bodies) drop(n int64) {
	b.r.account.Release(n)
	b.heldBytes -= n
}

// dropAll discounts results that are no longer used.
func (b *bodies) dropAll(list []*ir.Array) {
	for _, a := range list {
		b.drop(op.Held(a))
	}
}

// take counts n bytes of results.
func (b *bodies) take(n int64) error {
	if err := b.r.account.Take(n); err != nil {
		return err
	}
	b.heldBytes += n
	return nil
}

// checkCopy is an error if there is not enough memory for a copy of a.
func (b *bodies) checkCopy(a *ir.Array) error { return b.r.account.Check(op.Held(a)) }

// runBody runs a subgraph and returns its outputs, which the caller owns. args are its inputs without captures.
func (b *bodies) runBody(name string, args []*ir.Array) ([]*ir.Array, error) {
	p := b.s.bodies[name]
	if p == nil {
		return nil, fmt.Errorf("attribute %s is missing", name)
	}
	if len(args) != len(p.inputs) {
		return nil, fmt.Errorf("%s has %d inputs, got %d", name, len(p.inputs), len(args))
	}
	for _, cp := range p.captures {
		args = append(args, b.c.In[cp.outer])
	}
	// An endless loop with an empty body must end, too.
	if err := b.r.countSteps(1); err != nil {
		return nil, err
	}
	// In scratch memory of the step, so that the planned arena includes subgraphs.
	if pl := b.in.plan.bodies[b.i]; pl != nil {
		return b.runPlanned(name, pl[name], args)
	}
	e, inner, err := p.take(b.r, args)
	if err != nil {
		return nil, err
	}
	defer p.plans.put(e, inner, b.r.account)
	if _, err := inner.run(b.r, args, nil); err != nil {
		return nil, err
	}
	return b.results(inner)
}

// runPlanned runs a subgraph in the step's scratch memory.
func (b *bodies) runPlanned(name string, pl *plan, args []*ir.Array) ([]*ir.Array, error) {
	inner := b.in.bodies[b.i][name]
	if inner == nil {
		if b.in.bodies[b.i] == nil {
			b.in.bodies[b.i] = map[string]*instance{}
		}
		inner = pl.bind(b.c.Work[:pl.memory.Size], b.r.pool)
		b.in.bodies[b.i][name] = inner
	}
	// Its values are in scratch memory, which another step gets.
	defer inner.reset()
	if _, err := inner.run(b.r, args, nil); err != nil {
		return nil, err
	}
	return b.results(inner)
}

// results returns copies of the outputs of a subgraph, because its next run overwrites them.
func (b *bodies) results(in *instance) ([]*ir.Array, error) {
	out := make([]*ir.Array, len(in.plan.prog.outputs))
	for k, o := range in.plan.prog.outputs {
		a := &ir.Array{Kind: ir.None}
		if o != absent && in.values[o] != nil {
			a = in.values[o]
		}
		if err := b.take(op.Held(a)); err != nil {
			return nil, err
		}
		out[k] = copied(a)
	}
	return out, nil
}

// copied returns a copy of a. Items of a sequence are immutable and outside of the arena: the copy shares them, since a
// loop that adds an item in each iteration would copy all of them each time.
func copied(a *ir.Array) *ir.Array {
	if a.Kind == ir.Sequence {
		return &ir.Array{Kind: ir.Sequence, Items: slices.Clone(a.Items)}
	}
	return a.Clone()
}

// planBody plans a subgraph for inputs of these types, and stores the plan under its attribute name.
func (pl *planner) planBody(i int, s *step, name string, args, in []*ir.Array) (*plan, []ir.Spec, error) {
	p := s.bodies[name]
	if p == nil || len(args) != len(p.inputs) {
		return nil, nil, op.ErrUnknown
	}
	for _, cp := range p.captures {
		args = append(args, in[cp.outer])
	}
	b, err := p.newPlan(args, nil, pl.pool, pl.account)
	if err != nil {
		return nil, nil, err
	}
	specs := make([]ir.Spec, len(p.outputs))
	for k, o := range p.outputs {
		if o == absent || b.values[o] == nil || b.values[o].Kind != ir.Dense {
			return nil, nil, op.ErrUnknown
		}
		specs[k] = b.values[o].Spec()
	}
	if pl.bodies[i] == nil {
		pl.bodies[i] = map[string]*plan{}
	}
	pl.bodies[i][name] = b
	// Branches are alternatives: one of them runs at a time.
	pl.scratch[i] = max(pl.scratch[i], b.memory.Size)
	return b, specs, nil
}

func sameSpecs(a, b []ir.Spec) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].String() != b[i].String() {
			return false
		}
	}
	return true
}

// planIf plans the taken branch, or both if the condition is known at run time only.
func (pl *planner) planIf(i int, s *step, in []*ir.Array) ([]ir.Spec, error) {
	names := []string{"then_branch", "else_branch"}
	if op.IsKnown(in[0]) {
		taken, err := condition(in[0])
		if err != nil {
			return nil, err
		}
		names = []string{branchOf(taken)}
	}
	var specs []ir.Spec
	for _, name := range names {
		_, got, err := pl.planBody(i, s, name, nil, in)
		if err != nil {
			return nil, err
		}
		// The size of the result is known when the branch is, at run time.
		if specs != nil && !sameSpecs(specs, got) {
			return nil, op.ErrUnknown
		}
		specs = got
	}
	return specs, nil
}

func branchOf(taken bool) string {
	if taken {
		return "then_branch"
	}
	return "else_branch"
}

func (b *bodies) branch() ([]*ir.Array, error) {
	taken, err := condition(b.c.In[0])
	if err != nil {
		return nil, err
	}
	return b.runBody(branchOf(taken), nil)
}

// condition is the value of a tensor of one bool.
func condition(a *ir.Array) (bool, error) {
	if a == nil || a.DType != ir.Bool || len(a.Data) != 1 {
		return false, fmt.Errorf("the condition is %s, want one bool", a)
	}
	return a.Data[0] != 0, nil
}

// planLoop plans a body whose loop-carried values keep their types. The number of iterations, and so the size of scan
// outputs, is known at run time only.
func (pl *planner) planLoop(i int, s *step, in []*ir.Array) ([]ir.Spec, error) {
	body := s.bodies["body"]
	if body == nil || len(body.inputs) < 2 || s.NumIn < len(body.inputs) || len(body.outputs) != len(body.inputs)-1 {
		return nil, op.ErrUnknown
	}
	// The iteration number and the condition, without data: they differ between iterations.
	args := []*ir.Array{{DType: ir.Int64}, {DType: ir.Bool}}
	carried := []ir.Spec{}
	for _, a := range in[2:len(body.inputs)] {
		if a == nil {
			return nil, op.ErrUnknown
		}
		args = append(args, &ir.Array{DType: a.DType, Shape: a.Shape})
		carried = append(carried, a.Spec())
	}
	_, specs, err := pl.planBody(i, s, "body", args, in)
	// A value that grows has another type in each iteration; scan outputs have as many rows as there are iterations.
	if err != nil || !sameSpecs(specs[1:], carried) {
		return nil, op.ErrUnknown
	}
	return carried, nil
}

func (b *bodies) loop() ([]*ir.Array, error) {
	body := b.s.bodies["body"]
	if body == nil || len(body.inputs) < 2 || b.s.NumIn < len(body.inputs) {
		return nil, fmt.Errorf("the body does not accept %d inputs", b.s.NumIn)
	}
	n := len(body.inputs) - 2
	if len(body.outputs) < 1+n {
		return nil, fmt.Errorf("the body has %d outputs for %d carried values", len(body.outputs), n)
	}
	trips, going, err := b.bounds()
	if err != nil {
		return nil, err
	}
	carried := append([]*ir.Array(nil), b.c.In[2:2+n]...)
	collected := make([]*stacker, len(body.outputs)-1-n)
	for k := range collected {
		collected[k] = &stacker{b: b}
	}
	var last []*ir.Array // carried values of the previous iteration
	for iter := int64(0); going && (trips < 0 || iter < trips); iter++ {
		args := []*ir.Array{ir.ArrayOf([]int64{iter}), ir.ArrayOf([]bool{going})}
		out, err := b.runBody("body", append(args, carried...))
		if err != nil {
			return nil, err
		}
		if going, err = condition(out[0]); err != nil {
			return nil, err
		}
		// After the body has read them.
		b.dropAll(last)
		last, carried = out[:1+n], out[1:1+n]
		// At once into the result: arrays of each iteration took some 200 bytes for one int64 and kept the garbage
		// collector busy, so that five times the steps took twenty times the time.
		for k, c := range collected {
			if err := c.add(out[1+n+k]); err != nil {
				return nil, fmt.Errorf("output %d: %w", n+k, err)
			}
		}
		b.dropAll(out[1+n:])
	}
	return b.finish(carried, collected)
}

// bounds are the maximum trip count, negative if unbounded, and the initial condition.
func (b *bodies) bounds() (trips int64, going bool, err error) {
	trips, going = -1, true
	if m := b.c.Opt(0); m != nil {
		is, err := op.Ints(m)
		if err != nil || len(is) != 1 {
			return 0, false, fmt.Errorf("the trip count is %s, want one int64", m)
		}
		trips = max(is[0], 0)
	}
	if cond := b.c.Opt(1); cond != nil {
		going, err = condition(cond)
	}
	return trips, going, err
}

// finish returns the loop-carried values or states, and the stacked scan outputs, which are the last outputs of the
// body.
func (b *bodies) finish(carried []*ir.Array, collected []*stacker) ([]*ir.Array, error) {
	out := make([]*ir.Array, 0, len(carried)+len(collected))
	for _, a := range carried {
		if a != nil {
			if err := b.checkCopy(a); err != nil {
				return nil, err
			}
			a = copied(a) // without iterations it is an input
		}
		out = append(out, a)
	}
	body := b.s.bodies["body"]
	for k, c := range collected {
		a, err := c.result()
		if a == nil && err == nil {
			a = body.emptyStack(len(body.outputs) - len(collected) + k)
			err = op.Valid(a.Spec())
		}
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", len(out), err)
		}
		out = append(out, a)
	}
	return out, nil
}

// emptyStack is scan output k of a loop without iterations, of the declared type.
func (p *program) emptyStack(k int) *ir.Array {
	t := p.types[k]
	if t == nil || t.Elem == ir.Undefined {
		return ir.NewArray(ir.Float, 0)
	}
	shape := []int64{0}
	for _, d := range t.Shape {
		shape = append(shape, max(d.N, 0))
	}
	return ir.NewArray(t.Elem, shape...)
}

// sequenceMap runs its body on the items of sequences at the same position.
func (b *bodies) sequenceMap() ([]*ir.Array, error) {
	seq := b.c.In[0]
	if seq == nil || seq.Kind != ir.Sequence {
		return nil, fmt.Errorf("input 0 is %s, want a sequence", seq)
	}
	out := make([]*ir.Array, len(b.s.out))
	for k := range out {
		out[k] = &ir.Array{Kind: ir.Sequence}
	}
	for i := range seq.Items {
		args := make([]*ir.Array, b.s.NumIn)
		for k, a := range b.c.In[:b.s.NumIn] {
			args[k] = a
			if a == nil || a.Kind != ir.Sequence {
				continue
			}
			if i >= len(a.Items) {
				return nil, fmt.Errorf("input %d has %d items, input 0 has %d", k, len(a.Items), len(seq.Items))
			}
			args[k] = a.Items[i]
		}
		got, err := b.runBody("body", args)
		if err != nil {
			return nil, err
		}
		for k := range out {
			if k < len(got) {
				out[k].Items = append(out[k].Items, got[k])
			}
		}
	}
	return out, nil
}
