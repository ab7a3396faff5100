package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A digest identifies a value: if the digests of two sessions are equal, both compute it from the same inputs with the
// same operators and constants. The zero digest means unknown.
type digest [sha256.Size]byte

// digests returns the digests of p's slots, and of its steps without their inputs.
func (p *program) digests(identity func(*ir.Tensor) string) []digest {
	d := make([]digest, len(p.slots))
	for i, s := range p.slots {
		if s.constant != nil {
			d[i] = s.constant.digest(identity)
		}
	}
	for _, i := range p.inputs {
		d[i] = summed(func(h hash.Hash) bool { return words(h, "input", p.slots[i].name) })
	}
	for _, s := range p.steps {
		from := s.digest(func(i int) digest { return d[i] })
		for k, o := range s.out {
			if o != absent && from != (digest{}) {
				d[o] = summed(func(h hash.Hash) bool { return words(h, "output", fmt.Sprint(k)) && add(h, from) })
			}
		}
	}
	return d
}

// digest is that of a constant: of its identity, or of its data if they were read.
func (k *constant) digest(identity func(*ir.Tensor) string) digest {
	if k.tensor != nil {
		if name := identity(k.tensor); name != "" {
			return summed(func(h hash.Hash) bool { return words(h, "tensor", name) })
		}
	}
	return summed(func(h hash.Hash) bool { return array(h, k.array) })
}

// digest is that of the output of s for inputs with the digests that of returns; zero if one is unknown.
func (s *step) digest(of func(slot int) digest) digest {
	// Results of these do not follow from the inputs alone, or were not compared: digests of subgraphs are not
	// computed.
	if s.op.Impure || s.bodies != nil || len(s.op.Writes) > 0 {
		return digest{}
	}
	return summed(func(h hash.Hash) bool {
		// Consumed, because operators skip outputs without consumers; Seed, for those that use it although they are
		// pure for one session.
		words(h, s.ID.String(), fmt.Sprint(s.op.Since, s.Version, s.NumIn, s.Consumed, s.Seed))
		for _, i := range s.in {
			switch {
			case i == absent:
				words(h, "absent")
			case !add(h, of(i)):
				return false
			}
		}
		for _, name := range sortedKeys(s.Attrs()) {
			if !attribute(h, s.Attrs()[name], s.Array(name)) {
				return false
			}
		}
		return true
	})
}

// summed is the digest of the bytes that write writes; zero if write reports false.
func summed(write func(hash.Hash) bool) (d digest) {
	h := sha256.New()
	if write(h) {
		h.Sum(d[:0])
	}
	return d
}

func words(h hash.Hash, list ...string) bool {
	for _, w := range list {
		fmt.Fprintf(h, "%d:%s", len(w), w)
	}
	return true
}

func add(h hash.Hash, d digest) bool {
	h.Write(d[:])
	return d != digest{}
}

func array(h hash.Hash, a *ir.Array) bool {
	if a == nil || a.Kind != ir.Dense || !op.IsKnown(a) {
		return false
	}
	words(h, a.String(), string(a.Data))
	return words(h, a.Text...)
}

// attribute adds a, whose tensor is t. Attributes that hold graphs are not distinguished.
func attribute(h hash.Hash, a *ir.Attr, t *ir.Array) bool {
	if a.Graph != nil || a.Graphs != nil || a.Tensors != nil || a.Sparse != nil || a.Elided {
		return false
	}
	words(h, a.Name, fmt.Sprint(a.Type, a.I, a.Ints), a.S)
	_ = binary.Write(h, binary.LittleEndian, slices.Concat([]float32{a.F}, a.Floats))
	words(h, a.Strings...)
	return a.Tensor == nil || array(h, t)
}
