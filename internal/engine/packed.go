package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A packable is whether the value of a slot may be a packed constant: all of its consumers accept one, or would make
// another one of it.
type packable struct {
	ok     bool
	accept []*step // the consumers that accept it
}

// packable is that of each slot.
func (p *program) packable() []packable {
	all := make([]packable, len(p.slots))
	for i, s := range p.slots {
		all[i].ok = !s.keep
	}
	for _, i := range p.outputs {
		if i != absent {
			all[i].ok = false
		}
	}
	// Backwards: whether a form can pass through a step depends on the consumers of its result.
	for _, s := range slices.Backward(p.steps) {
		passes := (s.op.Pack != nil || s.op.View) && s.bodies == nil && len(s.out) > 0 && s.out[0] != absent &&
			all[s.out[0]].ok
		for k, i := range s.in {
			switch {
			// The step makes another packed form of it, or is a view.
			case i == absent || passes:
			case s.op.Decodes != nil && s.op.Decodes(s.Node, k, nil):
				all[i].accept = append(all[i].accept, s)
			default:
				all[i].ok = false
			}
		}
	}
	return all
}

// pack makes a packed constant of the output of s, whose inputs are constants, and reports whether it did.
func (l *loader) pack(p *program, s *step, slots []packable) bool {
	if s.op.Pack == nil && !s.op.View || len(s.out) != 1 || s.out[0] == absent || !slots[s.out[0]].ok {
		return false
	}
	in, packed, some := make([]*ir.Array, len(s.in)), make([]op.Packed, len(s.in)), s.op.Packs
	for i, j := range s.in {
		if j == absent {
			continue
		}
		k := p.slots[j].constant
		in[i], packed[i] = k.array, k.packed
		some = some || k.packed != nil
	}
	if !some || l.readUnpacked(p, s, packed) != nil {
		return false
	}
	specs, err := s.shape(in)
	// Weights of at most 64 KiB are dense: decoding takes time in each run.
	if err != nil || specs[0].Bytes() <= smallConstant {
		return false
	}
	var made op.Packed
	switch {
	case !s.op.View:
		if made = s.op.Pack(s.Node, in, packed); made == nil && s.op.Packs &&
			slices.ContainsFunc(packed, func(x op.Packed) bool { return x != nil }) {
			// The operator packs none of these forms: it may pack the dense values, as DequantizeLinear does.
			clear(packed)
			if l.readUnpacked(p, s, packed) == nil {
				made = s.op.Pack(s.Node, in, packed)
			}
		}
	case specs[0].DType == in[0].DType:
		made = packed[0]
	}
	if made == nil {
		return false
	}
	k := &constant{array: &ir.Array{DType: specs[0].DType, Shape: specs[0].Shape}, packed: made,
		counted: made.Bytes(), reserved: made.Bytes()}
	// Acceptance may depend on the form and the shape. A weight of which one consumer needs the dense form would be
	// held twice, so all have to accept.
	for _, consumer := range slots[s.out[0]].accept {
		accepted := consumer.accepts(slices.Index(consumer.in, s.out[0]), k)
		// The consumer gets it when its turn comes: until then the constant may become another form.
		if consumer.Packed = nil; !accepted {
			return false
		}
	}
	if made.Bytes() > l.budget || l.account.Take(made.Bytes()) != nil {
		return false
	}
	l.budget -= made.Bytes()
	p.slots[s.out[0]].constant = k
	return true
}

// readUnpacked reads the inputs of s that are not packed, unless memory is only planned.
func (l *loader) readUnpacked(p *program, s *step, packed []op.Packed) error {
	for i, j := range s.in {
		if j == absent || packed[i] != nil || l.planOnly {
			continue
		}
		if err := l.readConstant(p.slots[j].constant); err != nil {
			return err
		}
	}
	return nil
}

// takePacked passes a packed constant to s, and reports whether there is one that it accepts. Other packed inputs are
// decoded.
func (l *loader) takePacked(p *program, s *step) (bool, error) {
	for i, j := range s.in {
		if j == absent || p.slots[j].constant == nil || p.slots[j].constant.packed == nil {
			continue
		}
		k := p.slots[j].constant
		switch {
		case s.accepts(i, k):
			if s.repacks() {
				continue
			}
			s.dropped = append(s.dropped, i)
			if err := l.arrange(s, i, k); err != nil {
				return false, err
			}
		case !l.planOnly && !l.store.loads():
			if err := l.readConstant(k); err != nil {
				return false, err
			}
		}
	}
	return s.Packed != nil, nil
}

// accepts reports whether s accepts k as its packed input i, and sets it.
func (s *step) accepts(i int, k *constant) bool {
	if s.Packed != nil || s.op.Decodes == nil {
		return false
	}
	s.Packed = k.packed
	if s.op.Decodes(s.Node, i, k.array) {
		return true
	}
	s.Packed = nil
	return false
}

// repacks reports whether Prepare brings the packed constant of s into another form.
func (s *step) repacks() bool {
	switch s.Packed.(type) {
	// These have no layout of a kernel; Prepare brings them into one even where the step also has Arrange.
	case packedweight.Filled, *packedweight.Sparse:
		return s.op.Prepare != nil
	}
	return s.op.Prepare != nil && s.op.Arrange == nil
}

// arrange lets s arrange its packed input i, which is k. Stored ones are arranged.
func (l *loader) arrange(s *step, i int, k *constant) error {
	packed, ok := k.packed.(op.Arranged)
	// Stored forms were arranged before they were stored.
	if !ok || s.op.Arrange == nil || l.store.loads() {
		return nil
	}
	before := packed.Bytes()
	s.op.Arrange(s.Node, i, k.array, packed, l.pool)
	// Panels are padded, so that the arranged form may be larger or, if sparse, smaller.
	grown := packed.Bytes() - before
	k.counted += grown
	if grown < 0 {
		l.account.Release(-grown)
		return nil
	}
	return l.account.Take(grown)
}

// decode makes the data of a packed constant dense.
func (l *loader) decode(k *constant) error {
	n := k.array.Bytes()
	if err := l.account.Take(n); err != nil {
		return err
	}
	k.counted += n
	k.array.Data = ir.AlignedBytes(n)
	const piece = 1 << 14
	l.pool.Rows(int(k.array.Elems()), piece, func(from, to int) {
		part := op.Part{At: from, Rows: 1, Cols: to - from, DstCol: 1}
		if k.array.DType == ir.Float {
			k.packed.Decode(ir.View[float32](k.array)[from:to], part)
			return
		}
		x := make([]float32, to-from)
		k.packed.Decode(x, part)
		if k.array.DType == ir.Int32 {
			for i, v := range x {
				ir.View[int32](k.array)[from+i] = int32(v)
			}
			return
		}
		kernel.F16FromF32(ir.View[uint16](k.array)[from:to], x)
	})
	return nil
}
