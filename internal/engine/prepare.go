package engine

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// prepare lets the step's operator prepack its constant inputs, unless record r has the result.
func (l *loader) prepare(p *program, s *step, r *storedStep) error {
	basis := l.preparedDigest(p, s)
	if l.reusePrepared(p, s, basis) {
		return nil
	}
	if basis != (digest{}) {
		l.shared.prepared[basis] = s
	}
	made, restored, err := l.restorePrepared(s, r)
	if err == nil && !restored {
		made, err = l.callPrepare(p, s, r)
	}
	s.Packed = nil
	if err != nil || made == nil {
		return err
	}
	if err := l.account.Take(made.Bytes); err != nil {
		return err
	}
	l.prepared += made.Bytes
	s.State = made.State
	for _, i := range made.Drops {
		s.dropped = append(s.dropped, i)
		l.release(p.slots[s.in[i]].constant)
	}
	return nil
}

// callPrepare calls Prepare with the data of the constant inputs, and records the result in r, which may be nil.
func (l *loader) callPrepare(p *program, s *step, r *storedStep) (*op.Prepared, error) {
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if j == absent || p.slots[j].constant == nil || p.slots[j].constant.stream {
			continue
		}
		k := p.slots[j].constant
		if in[i] = k.array; s.Packed != nil && k.packed == s.Packed {
			continue
		}
		if err := l.readConstant(k); err != nil {
			return nil, err
		}
	}
	made, err := s.op.Prepare(s.Node, in, l.pool)
	if err != nil {
		return nil, err
	}
	return made, l.recordPrepared(p, s, r, made)
}
