package kernel

import (
	"encoding/binary"
	"iter"
)

// A SparseType is the type in which values of SparseRows are stored.
type SparseType int

// The types.
const (
	SparseFloat SparseType = iota // float32
	SparseHalf                    // float16
	SparseInt8                    // int8
)

// size is the number of bytes of a value.
func (t SparseType) size() int { return [...]int{4, 2, 1}[t] }

// SparseValues are a type, which must represent the values, and unless it is SparseFloat a scale for each row, by which
// they are multiplied, as DequantizeLinear does, before they are multiplied by x. The scales are finite.
type SparseValues struct {
	Type   SparseType
	Scales []float32
}

// SparseWork is the scratch memory of Multiply in elements: two of the largest quads. They stay in the L1 cache.
const SparseWork = 2*SparseQuad*SparseDepth + sparseSlack

// sparseSlack is the number of values that decoding may read and write beyond the last one: the vectors have two
// elements of each row.
const sparseSlack = SparseQuad

// grow appends n zeros and returns the index of the first one.
func (s *SparseRows) grow(n int) int {
	if s.Type == SparseFloat {
		s.values = append(s.values, make([]float32, n)...)
		return len(s.values) - n
	}
	size := s.Type.size()
	s.stored = append(s.stored, make([]byte, n*size)...)
	return len(s.stored)/size - n
}

// set stores values of a row of a quad, the first one at an index.
func (s *SparseRows) set(first int, values []float32) {
	switch s.Type {
	case SparseFloat:
		for i, v := range values {
			s.values[first+i*SparseQuad] = v
		}
	case SparseHalf:
		var halves [SparseDepth]uint16
		F16FromF32(halves[:len(values)], values)
		for i, h := range halves[:len(values)] {
			binary.LittleEndian.PutUint16(s.stored[2*(first+i*SparseQuad):], h)
		}
	default:
		for i, v := range values {
			s.stored[first+i*SparseQuad] = byte(int8(v))
		}
	}
}

// decoded is all quads, as many at a time as fit into work. Those of SparseFloat are not copied.
func (s *SparseRows) decoded(work []float32) iter.Seq[sparseQuads] {
	return func(yield func(sparseQuads) bool) {
		if s.Type == SparseFloat {
			yield(s.sparseQuads)
			return
		}
		within("work", len(work), SparseWork)
		index, stored := s.index, s.stored
		for rest := s.quads; rest > 0; {
			q := sparseQuads{index: index}
			elems := 0
			// As many as stay in the L1 cache until they are multiplied.
			for ; q.quads < rest; q.quads++ {
				n := SparseQuad * int(binary.LittleEndian.Uint16(index[SparseQuad:]))
				if elems+n > SparseWork-sparseSlack {
					break
				}
				elems, index = elems+n, index[quadHead+n:]
			}
			q.values = work[:elems]
			if cap(stored) < (elems+sparseSlack)*s.Type.size() || !q.decodeBulk(stored, s.Type, s.Scales) {
				q.decodePlain(stored, s.Type, s.Scales)
			}
			if !yield(q) {
				return
			}
			stored, rest = stored[elems*s.Type.size():], rest-q.quads
		}
	}
}

// decodePlain is the twin of decodeBulk.
func (q sparseQuads) decodePlain(stored []byte, t SparseType, scales []float32) {
	index, values := q.index, q.values
	for range q.quads {
		head := index[:quadHead]
		count := SparseQuad * int(binary.LittleEndian.Uint16(head[SparseQuad:]))
		for i := range count {
			// Rounded as DequantizeLinear does, so that results are those of the dense weight.
			values[i] = t.value(stored[i*t.size():]) * scales[head[i%SparseQuad]]
		}
		index, values, stored = index[quadHead+count:], values[count:], stored[count*t.size():]
	}
}

// value is value i, which is of this row.
func (s *SparseRows) value(i, row int) float32 {
	if s.Type == SparseFloat {
		return s.values[i]
	}
	return s.Type.value(s.stored[i*s.Type.size():]) * s.Scales[row]
}

// value is the first stored value.
func (t SparseType) value(stored []byte) float32 {
	if t == SparseInt8 {
		return float32(int8(stored[0]))
	}
	var v [1]float32
	F32FromF16(v[:], []uint16{binary.LittleEndian.Uint16(stored)})
	return v[0]
}

// Int32FromFloat converts integers within the range of int32, exactly. dst and x may share memory.
func Int32FromFloat(dst []int32, x []float32) {
	checkLen("dst", len(dst), len(x))
	for i := int32FromFloatBulk(dst, x); i < len(x); i++ {
		dst[i] = int32(x[i])
	}
}
