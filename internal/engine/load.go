package engine

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// smallConstant is the maximum size of constants that are read before fusion, and of results that are constant-folded
// there: shapes, axes, factors.
const smallConstant = 64 << 10

// readTensor reads a whole tensor into memory, which it counts in account.
func readTensor(ctx context.Context, e *ir.Eval, account *op.Account, t *ir.Tensor) (*ir.Array, error) {
	a := &ir.Array{DType: t.DType, Shape: t.Shape}
	if err := op.Valid(t.Spec); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	// Before the allocation: the Go runtime ends the process where there is no memory.
	if err := account.Take(op.Size(t.Spec)); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	// An empty tensor of strings has no source to read.
	if t.DType == ir.String && t.Elems() == 0 {
		return a, nil
	}
	if text, ok := t.Source.(ir.Text); ok {
		words, err := text()
		if err == nil && int64(len(words)) != t.Elems() {
			err = fmt.Errorf("%d strings for shape %v", len(words), t.Shape)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		a.Text = words
		return a, nil
	}
	r, err := e.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	a.Data = ir.AlignedBytes(t.Bytes())
	if err := ir.ReadFull(r, a.Data, 0); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return a, nil
}

// A loader reads constants, folds operators on them, and prepares operators.
type loader struct {
	ctx  context.Context
	eval *ir.Eval
	pool *op.Pool

	account  *op.Account
	planOnly bool
	prepared int64 // bytes held by operators
	budget   int64 // bytes still available for folded results; larger ones are computed in each run

	store    *Store       // may be nil
	shared   *sharedState // of the new session, nil if no other session will use it
	baseline *sharedState // of the baseline session; may be nil
}

// reserve subtracts the size of the results of s from the budget, and reports whether the budget suffices.
func (l *loader) reserve(s *step, in []*ir.Array) bool {
	if s.op.Shape == nil || s.op.View {
		return true
	}
	specs, err := s.shape(in)
	if err != nil {
		return true // reported when s runs
	}
	bytes := int64(0)
	for i, spec := range specs {
		if i < len(s.out) && s.out[i] != absent {
			if bytes = op.Plus(bytes, op.Size(spec)); bytes > l.budget {
				return false
			}
		}
	}
	l.budget -= bytes
	return true
}

// reserveText subtracts the text of the results of s from the budget, and reports whether the budget suffices: its size
// is not part of their types.
func (l *loader) reserveText(s *step, out []*ir.Array) bool {
	if s.op.View {
		return true
	}
	bytes := int64(0)
	for _, a := range out {
		if a != nil {
			bytes = op.Plus(bytes, textBytes(a))
		}
	}
	if bytes > l.budget {
		return false
	}
	l.budget -= bytes
	return true
}

// readConstant makes sure that k's data are in memory.
func (l *loader) readConstant(k *constant) error {
	if op.IsKnown(k.array) {
		return nil
	}
	if k.packed != nil {
		return l.decode(k)
	}
	if k.tensor == nil {
		return fmt.Errorf("constant of type %s was released too early", k.array)
	}
	if t := l.sharedConstant(k); t != nil {
		k.array.Data, k.array.Text = t.array.Data, t.array.Text
		return nil
	}
	a, err := readTensor(l.ctx, l.eval, l.account, k.tensor)
	if err == nil {
		k.array.Data, k.array.Text = a.Data, a.Text
		k.counted = op.Size(k.tensor.Spec)
	}
	return err
}

// release drops one use of k; the last one frees its memory.
func (l *loader) release(k *constant) {
	if k.uses--; k.uses == 0 {
		k.array.Data, k.array.Text, k.packed = nil, nil, nil
		l.account.Release(k.counted)
		k.counted = 0
	}
}

// foldSmall reads the small constants of p and folds operators on them.
func (l *loader) foldSmall(p *program) error {
	for _, s := range p.slots {
		if s.constant != nil && s.constant.tensor != nil && s.constant.tensor.Bytes() <= smallConstant {
			if err := l.readConstant(s.constant); err != nil {
				return err
			}
		}
	}
	// Without the capacity of p.steps, whose steps are still iterated over.
	kept := p.steps[:0:0]
	for _, s := range p.steps {
		// A fusion that matches DequantizeLinear before a product has to find it.
		if p.quantizedWeight(s) || !p.foldable(s) || !l.small(p, s) || !l.compute(p, s) {
			kept = append(kept, s)
		}
	}
	p.steps = kept
	return l.ctx.Err()
}

// quantizedWeight reports whether s dequantizes a constant of several axes: fusions may keep it quantized, and it is
// folded after them.
func (p *program) quantizedWeight(s *step) bool {
	return s.is("DequantizeLinear") && p.slots[s.in[0]].constant != nil &&
		len(p.slots[s.in[0]].constant.array.Shape) > 1
}

// small reports whether the constant inputs of s, and its outputs as far as their types are known, are small.
func (l *loader) small(p *program, s *step) bool {
	in, bytes := make([]*ir.Array, len(s.in)), int64(0)
	for k, i := range s.in {
		if i == absent {
			continue
		}
		in[k] = p.slots[i].constant.array
		// Shape and Size of a weight do not read it, whatever its size.
		if bytes += max(in[k].Bytes(), textBytes(in[k])); bytes > smallConstant && !s.op.OfShape {
			return false
		}
	}
	if s.op.Shape == nil {
		return true
	}
	specs, err := s.shape(in)
	for _, spec := range specs {
		if err == nil && op.Size(spec) > smallConstant {
			return false
		}
	}
	return true
}

// count counts the uses of each constant.
func (p *program) count() error {
	for i, n := range p.consumers() {
		k := p.slots[i].constant
		if k == nil {
			continue
		}
		k.uses += n
		if p.slots[i].keep {
			k.uses++
			k.fetchable = true
		}
	}
	// Uses that read rows only are counted apart: streaming a table that has no other is cheap.
	for _, s := range p.steps {
		if k := p.table(s); k != nil {
			k.rows++
		}
	}
	return nil
}

// freeUnused drops the data of constants that only folded steps used.
func (l *loader) freeUnused(p *program) error {
	for _, s := range p.slots {
		if k := s.constant; k != nil && k.uses == 0 {
			// One use, which release drops with the data.
			k.uses = 1
			l.release(k)
		}
	}
	return nil
}

// foldAndPrepare processes the steps in order: it folds constants, and operators prepack their weights. Each large
// constant is read just before and released right after, so that few are held twice.
func (l *loader) foldAndPrepare(p *program) error {
	kept := p.steps[:0:0]
	fixed, slots := map[int]bool{}, p.packable()
	for _, s := range p.steps {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		record, err := l.store.step(s)
		if err != nil {
			return err
		}
		// Before Prepare: a weight that several steps compute from constants is one constant for it.
		folded, err := l.fold(p, s, record, slots)
		if err != nil {
			return s.wrap(err)
		}
		if folded {
			// At once, so that inputs that no other step needs are free before the next weight is read.
			l.moveUses(p, s)
			continue
		}
		kept = append(kept, s)
		// In the order of steps: what follows from streamed constants is known for the inputs of s.
		s.Fixed = p.invariant(s, fixed)
		if packed, err := l.takePacked(p, s); packed && !s.repacks() || err != nil || s.op.Prepare == nil {
			if err != nil {
				return s.wrap(err)
			}
			continue
		}
		// Work depends on Const, so that the planned scratch memory is that of runs, although nothing is prepared.
		if s.Const = p.constants(s); l.planOnly {
			s.Packed = nil
			continue
		}
		if err := l.prepare(p, s, record); err != nil {
			return s.wrap(err)
		}
	}
	p.steps = kept
	return nil
}

// constants marks the inputs of s that are constants in memory.
func (p *program) constants(s *step) []bool {
	out := make([]bool, len(s.in))
	for i, j := range s.in {
		out[i] = j != absent && p.slots[j].constant != nil && !p.slots[j].constant.stream
	}
	return out
}

// invariant marks the inputs of s that are equal in every run without being in memory: streamed constants, and values
// computed from them, which late holds. It adds the outputs of s to late if they are invariant.
func (p *program) invariant(s *step, late map[int]bool) []bool {
	out := make([]bool, len(s.in))
	// Random numbers and subgraphs may differ between runs.
	all := !s.op.Impure && s.bodies == nil
	for i, j := range s.in {
		if j == absent {
			continue
		}
		k := p.slots[j].constant
		out[i] = late[j] || k != nil && k.stream
		all = all && (out[i] || k != nil)
	}
	for _, o := range s.out {
		late[o] = all
	}
	return out
}

// foldStep turns the outputs of s into constants; if only memory is planned, without data where their types are known
// without.
func (l *loader) foldStep(p *program, s *step) bool {
	// A result whose type depends on the data has to be computed even for a plan.
	if !l.planOnly || s.op.Shape == nil {
		return l.compute(p, s)
	}
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j != absent {
			in[i] = p.slots[j].constant.array
		}
	}
	specs, err := s.shape(in)
	if err != nil {
		return l.compute(p, s)
	}
	// Results beyond the budget are computed in each run, as if s had an input.
	if !l.reserve(s, in) {
		return false
	}
	for i, o := range s.out {
		if o != absent {
			p.slots[o].constant = s.folded(&ir.Array{DType: specs[i].DType, Shape: specs[i].Shape})
		}
	}
	return true
}

// moveUses moves the uses of s's inputs to its outputs, which are constants now, and returns the budget of inputs that
// are not used anymore: the intermediate results of a chain of folded steps. The output of a View is still the memory
// of its input.
func (l *loader) moveUses(p *program, s *step) {
	n := p.consumers()
	for _, o := range s.out {
		if o == absent || p.slots[o].constant == nil {
			continue
		}
		// The outputs have the consumers that the slots had when s was still a step.
		p.slots[o].constant.uses = n[o]
		if p.slots[o].keep {
			p.slots[o].constant.uses++
		}
	}
	for _, i := range s.in {
		if i == absent {
			continue
		}
		k := p.slots[i].constant
		if l.release(k); k.uses > 0 {
			continue
		}
		// A view has no bytes of its own: it keeps those reserved for its input.
		if out := s.out[0]; s.op.View && out != absent && p.slots[out].constant.packed == nil {
			p.slots[out].constant.reserved += k.reserved
		} else {
			l.budget += k.reserved
		}
		k.reserved = 0
	}
}

// readRest reads the remaining constants, those that steps use unprepared.
func (l *loader) readRest(p *program) error {
	for _, s := range p.slots {
		if s.constant != nil && s.constant.uses > 0 && !s.constant.stream && s.constant.packed == nil {
			if err := l.readConstant(s.constant); err != nil {
				return err
			}
		}
	}
	return l.ctx.Err()
}

// folded is the constant for an output of s, for which reserve subtracted its size from the budget.
func (s *step) folded(a *ir.Array) *constant {
	if s.op.Shape == nil || s.op.View {
		return &constant{array: a}
	}
	return &constant{array: a, reserved: op.Size(a.Spec())}
}

func (p *program) foldable(s *step) bool {
	if s.op.Impure || s.bodies != nil {
		return false
	}
	for _, i := range s.in {
		if i != absent && (p.slots[i].constant == nil || p.slots[i].constant.stream) {
			return false
		}
	}
	return true
}

// compute runs one step on constants and makes constants of its outputs. A step that fails is kept, so that the error
// is reported if it runs: it may be part of a branch that is not taken.
func (l *loader) compute(p *program, s *step) bool {
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j == absent {
			continue
		}
		if in[i] = p.slots[j].constant.array; s.op.OfShape {
			continue // the shape of a weight does not require its data
		}
		if err := l.readConstant(p.slots[j].constant); err != nil {
			return false
		}
	}
	// Before the operator allocates the outputs.
	if !l.reserve(s, in) {
		return false
	}
	// The account refuses results that do not fit the limit; then, too, the step stays.
	out, err := runAlone(s, op.Call{Ctx: l.ctx, In: in, Pool: l.pool, Account: l.account})
	if err != nil || !l.reserveText(s, out) {
		return false
	}
	for i, o := range s.out {
		if o == absent || out[i] == nil {
			continue
		}
		k := s.folded(out[i])
		if n := op.Held(out[i]); !s.op.View && l.account.Take(n) == nil {
			k.counted = n
		}
		p.slots[o].constant = k
	}
	return true
}

// runAlone runs step s for call c, with newly allocated outputs.
func runAlone(s *step, c op.Call) ([]*ir.Array, error) {
	in := c.In
	c.Node, c.Out = s.Node, make([]*ir.Array, len(s.out))
	// A sequence or an optional has no shape function; a view of it is itself.
	if s.op.View && len(in) > 0 && in[0] != nil && in[0].Kind != ir.Dense {
		return in[:1], nil
	}
	if err := s.allocate(&c); err != nil {
		return nil, err
	}
	if s.op.View {
		c.Out[0].Data, c.Out[0].Text = in[0].Data, in[0].Text
		return c.Out, nil
	}
	return c.Out, s.run(&c)
}

// allocate creates the outputs of c with the types that Shape returns, and its scratch memory, if the account has
// enough for them.
func (s *step) allocate(c *op.Call) (err error) {
	var specs []ir.Spec
	if s.op.Shape != nil {
		if specs, err = s.shape(c.In); err != nil {
			return err
		}
	}
	scratch, need := int64(0), int64(0)
	if s.op.Work != nil && !s.op.View {
		if scratch, err = s.scratch(c.In, c.Pool.Workers()); err != nil {
			return err
		}
		need = scratch
	}
	for i, spec := range specs {
		if i < len(s.out) && s.out[i] != absent && !s.op.View {
			need = op.Plus(need, op.Size(spec))
		}
	}
	// One check for outputs and scratch memory: they exist at the same time.
	if err := c.Account.Check(need); err != nil {
		return s.wrap(err)
	}
	c.Work = ir.AlignedBytes(scratch)
	for i, spec := range specs {
		switch {
		case i >= len(s.out) || s.out[i] == absent:
		case s.op.View:
			c.Out[i] = &ir.Array{DType: spec.DType, Shape: spec.Shape}
		default:
			c.Out[i] = ir.NewArray(spec.DType, spec.Shape...)
		}
	}
	return nil
}
