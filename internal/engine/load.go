package engine

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// smallConstant is the size up to which constants are read before patterns are looked for,
// and up to which results are computed ahead: shapes, axes, factors.
const smallConstant = 64 << 10

// readTensor reads a whole tensor into memory.
func readTensor(ctx context.Context, e *ir.Eval, t *ir.Tensor) (*ir.Array, error) {
	a := &ir.Array{DType: t.DType, Shape: t.Shape}
	if err := t.Valid(); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
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

// A loader reads constants, computes what follows from them, and prepares operators.
type loader struct {
	ctx  context.Context
	eval *ir.Eval
	pool *op.Pool

	planOnly bool
	prepared int64 // bytes that operators hold on to
	room     int64 // bytes that results computed ahead may still take: what takes more is left to the runs

	commons *commons // of the session that is made, nil if no other will have any of it
	beside  *commons // of the session that this one is made beside; may be nil
}

// takes claims room for the results of s, false if there is none.
func (l *loader) takes(s *step, in []*ir.Array) bool {
	if s.op.Shape == nil || s.op.View {
		return true
	}
	specs, err := s.shape(in)
	if err != nil {
		return true // it will be said when s runs
	}
	bytes := int64(0)
	for i, spec := range specs {
		if i < len(s.out) && s.out[i] != absent {
			if bytes += spec.Bytes(); bytes > l.room {
				return false
			}
		}
	}
	l.room -= bytes
	return true
}

// read makes sure that k's data are there.
func (l *loader) read(k *constant) error {
	if op.Known(k.array) {
		return nil
	}
	if k.tensor == nil {
		return fmt.Errorf("a constant of type %s was given up too early", k.array)
	}
	if t := l.twin(k); t != nil {
		k.array.Data, k.array.Text = t.array.Data, t.array.Text
		return nil
	}
	a, err := readTensor(l.ctx, l.eval, k.tensor)
	if err == nil {
		k.array.Data, k.array.Text = a.Data, a.Text
	}
	return err
}

// release gives up one use of k; the last one frees its memory.
func (k *constant) release() {
	if k.uses--; k.uses == 0 {
		k.array.Data, k.array.Text = nil, nil
	}
}

// small reads the small constants of p and computes what follows from them alone.
func (l *loader) small(p *program) error {
	for _, s := range p.slots {
		if s.konst != nil && s.konst.tensor != nil && s.konst.tensor.Bytes() <= smallConstant {
			if err := l.read(s.konst); err != nil {
				return err
			}
		}
	}
	kept := p.steps[:0:0]
	for _, s := range p.steps {
		if !p.foldable(s) || l.sizes(p, s) > smallConstant && !s.op.OfShape || !l.compute(p, s) {
			kept = append(kept, s)
		}
	}
	p.steps = kept
	return l.ctx.Err()
}

// sizes is the bytes of the step's inputs.
func (l *loader) sizes(p *program, s *step) (n int64) {
	for _, i := range s.in {
		if i != absent {
			n += p.slots[i].konst.array.Bytes()
		}
	}
	return n
}

// count notes how often each constant is needed.
func (p *program) count() error {
	for i, n := range p.readers() {
		k := p.slots[i].konst
		if k == nil {
			continue
		}
		k.uses += n
		if p.slots[i].keep {
			k.uses++
			k.kept = true
		}
	}
	for _, s := range p.steps {
		if k := p.table(s); k != nil {
			k.rows++
		}
	}
	return nil
}

// settle goes through the steps in order. What follows from constants alone is computed, and operators
// turn theirs into what they would rather have. Each large constant is read just before that
// and given up right after it, so that few are held twice.
func (l *loader) settle(p *program) error {
	kept := p.steps[:0:0]
	fixed := map[int]bool{}
	for _, s := range p.steps {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if p.foldable(s) && l.ahead(p, s) {
			p.adopt(s)
			continue
		}
		kept = append(kept, s)
		s.Fixed = p.fixed(s, fixed)
		if s.op.Prepare == nil {
			continue
		}
		if s.Const = p.constants(s); l.planOnly {
			continue
		}
		if err := l.prepare(p, s); err != nil {
			return fmt.Errorf("node %q (%s): %w", s.Label, s.ID, err)
		}
	}
	p.steps = kept
	return nil
}

// constants says which inputs of s are constants in memory.
func (p *program) constants(s *step) []bool {
	out := make([]bool, len(s.in))
	for i, j := range s.in {
		out[i] = j != absent && p.slots[j].konst != nil && !p.slots[j].konst.stream
	}
	return out
}

// fixed says which inputs of s are the same in every run without being in memory: constants that are read for
// each one, and what follows from them, which late holds. It adds what s makes of such.
func (p *program) fixed(s *step, late map[int]bool) []bool {
	out := make([]bool, len(s.in))
	all := !s.op.Impure && s.bodies == nil
	for i, j := range s.in {
		if j == absent {
			continue
		}
		k := p.slots[j].konst
		out[i] = late[j] || k != nil && k.stream
		all = all && (out[i] || k != nil)
	}
	for _, o := range s.out {
		late[o] = all
	}
	return out
}

// ahead makes constants of s's outputs; where only memory is planned, without data if their
// types follow without.
func (l *loader) ahead(p *program, s *step) bool {
	if !l.planOnly || s.op.Shape == nil {
		return l.compute(p, s)
	}
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j != absent {
			in[i] = p.slots[j].konst.array
		}
	}
	specs, err := s.shape(in)
	if err != nil {
		return l.compute(p, s)
	}
	if !l.takes(s, in) {
		return false
	}
	for i, o := range s.out {
		if o != absent {
			p.slots[o].konst = &constant{array: &ir.Array{DType: specs[i].DType, Shape: specs[i].Shape}}
		}
	}
	return true
}

// adopt moves the uses of s's inputs on to its outputs, which are constants now.
func (p *program) adopt(s *step) {
	n := p.readers()
	for _, o := range s.out {
		if o == absent || p.slots[o].konst == nil {
			continue
		}
		p.slots[o].konst.uses = n[o]
		if p.slots[o].keep {
			p.slots[o].konst.uses++
		}
	}
	for _, i := range s.in {
		if i != absent {
			p.slots[i].konst.release()
		}
	}
}

// rest reads the constants that steps still need as they are.
func (l *loader) rest(p *program) error {
	for _, s := range p.slots {
		if s.konst != nil && s.konst.uses > 0 && !s.konst.stream {
			if err := l.read(s.konst); err != nil {
				return err
			}
		}
	}
	return l.ctx.Err()
}

func (p *program) foldable(s *step) bool {
	if s.op.Impure || s.bodies != nil {
		return false
	}
	for _, i := range s.in {
		if i != absent && (p.slots[i].konst == nil || p.slots[i].konst.stream) {
			return false
		}
	}
	return true
}

// compute runs one step on constants and makes constants of its outputs. A step that
// fails stays, so that the error comes when it runs, if it ever does: it may stand in a
// branch that is not taken.
func (l *loader) compute(p *program, s *step) bool {
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j == absent {
			continue
		}
		if in[i] = p.slots[j].konst.array; s.op.OfShape {
			continue // who asks for the shape of a weight does not want it read
		}
		if err := l.read(p.slots[j].konst); err != nil {
			return false
		}
	}
	if !l.takes(s, in) {
		return false
	}
	out, err := runAlone(s, op.Call{Ctx: l.ctx, In: in, Pool: l.pool})
	if err != nil {
		return false
	}
	for i, o := range s.out {
		if o != absent && out[i] != nil {
			p.slots[o].konst = &constant{array: out[i]}
		}
	}
	return true
}

// runAlone runs a step with memory of its own for its outputs. c says with what.
func runAlone(s *step, c op.Call) ([]*ir.Array, error) {
	in := c.In
	c.Node, c.Out = s.Node, make([]*ir.Array, len(s.out))
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
	if s.op.Work != nil {
		n, err := s.scratch(in, c.Pool.Workers())
		if err != nil {
			return nil, err
		}
		c.Work = ir.AlignedBytes(n)
	}
	return c.Out, s.run(&c)
}

// allocate gives c's outputs the types that Shape says and memory of their own.
func (s *step) allocate(c *op.Call) error {
	if s.op.Shape == nil {
		return nil
	}
	specs, err := s.shape(c.In)
	if err != nil {
		return err
	}
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

// prepare lets the step's operator turn its constant inputs into what it would rather have.
func (l *loader) prepare(p *program, s *step) error {
	basis := l.basis(p, s)
	if l.reuse(p, s, basis) {
		return nil
	}
	if basis != (digest{}) {
		l.commons.states[basis] = s
	}
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j == absent || p.slots[j].konst == nil || p.slots[j].konst.stream {
			continue
		}
		if err := l.read(p.slots[j].konst); err != nil {
			return err
		}
		in[i] = p.slots[j].konst.array
	}
	made, err := s.op.Prepare(s.Node, in, l.pool)
	if err != nil || made == nil {
		return err
	}
	l.prepared += made.Bytes
	s.State = made.State
	for _, i := range made.Drops {
		s.dropped = append(s.dropped, i)
		p.slots[s.in[i]].konst.release()
	}
	return nil
}
