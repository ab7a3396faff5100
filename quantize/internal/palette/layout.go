package palette

import (
	"math/bits"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// A Layout divides a weight into elements (o, g, i) of Outer × Groups × Inner, in the order of the file. Codebook g has the elements (·, g, ·).
type Layout struct {
	Entries              int   // of a codebook
	Vector               int   // consecutive elements of an entry
	Block                int64 // consecutive elements that share a scale; 0 without scales
	Outer, Groups, Inner int64
	Elems                int64    // of the weight; with Outer 1 the last group may have fewer elements than Inner
	Index                ir.DType // of indices: Uint8 where bytes hold several
}

// newLayout divides elements of shape into groups of channels along axis, or into runs of elements with axis -1. With size 0 there is one group.
func newLayout(shape []int64, axis int, size, block int64, entries, vector int) *Layout {
	l := &Layout{Entries: entries, Vector: vector, Block: block, Outer: 1, Groups: 1, Inner: (ir.Spec{Shape: shape}).Elems(), Index: ir.Uint8}
	l.Elems = l.Inner
	switch {
	case size == 0 || l.Elems == 0:
		return l
	case axis < 0:
		l.Inner = min(size, l.Elems)
	default:
		for _, d := range shape[:axis] {
			l.Outer *= d
		}
		channel := l.Elems / l.Outer / shape[axis]
		if size = min(size, shape[axis]); l.Outer > 1 {
			size = weightonly.Divisor(shape[axis], size)
		}
		l.Inner = size * channel
	}
	if l.Groups = ceilDiv(l.Elems/l.Outer, l.Inner); block > 0 && l.Groups > 1 {
		l.Block = weightonly.Divisor(l.Inner, block)
	}
	return l
}

func ceilDiv(n, by int64) int64 { return (n + by - 1) / by }

// group is the codebook of element i, and the first element after i that may have another one.
func (l *Layout) group(i int64) (g, end int64) {
	if l.Groups == 1 { // of all elements, also if they are Outer runs of it: blocks may span these
		return 0, l.Elems
	}
	run := i / l.Inner
	return run % l.Groups, min(l.Elems, (run+1)*l.Inner)
}

// bits is the size of an index.
func (l *Layout) bits() int64 { return int64(bits.Len(uint(l.Entries - 1))) }

// packed reports whether bytes hold several indices.
func (l *Layout) packed() bool { return l.Index == ir.Uint8 && l.Entries < 256 }

// entry is the number of elements of an entry.
func (l *Layout) entry() int64 { return int64(l.Vector) }

// stored is the number of floats of a codebook.
func (l *Layout) stored() int64 { return int64(l.Entries) * l.entry() }

// unit is the number of indices that fill whole bytes, and that of these bytes.
func (l *Layout) unit() (indices, bytes int64) {
	if bits := l.bits(); bits != 6 {
		return 8 / bits, 1
	}
	return 4, 3
}

// padded is the number of elements whose indices are stored: whole units, whole blocks and, with several groups, whole ones.
func (l *Layout) padded() int64 {
	n, _ := l.unit()
	step, elems := l.step(n*l.entry()), l.Elems
	if l.Groups > 1 {
		elems = l.Outer * l.Groups * l.Inner
	}
	return ceilDiv(elems, step) * step
}

// whole is the number of elements that are looked up: those that are stored, without the rest of a unit after whole groups.
func (l *Layout) whole() int64 {
	if l.Groups > 1 {
		return l.Outer * l.Groups * l.Inner
	}
	return l.padded()
}

// step is the least number of elements of whole blocks and whole units of n elements.
func (l *Layout) step(n int64) int64 { return lcm(n, max(1, l.Block)) }

func lcm(a, b int64) int64 {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// indexShape is that of the stored indices.
func (l *Layout) indexShape() []int64 {
	n, bytes := l.unit()
	if !l.packed() {
		return []int64{l.padded() / l.entry()}
	}
	return []int64{l.padded() / l.entry() / n, bytes}
}

// scales is the number of scales.
func (l *Layout) scales() int64 {
	if l.Block == 0 {
		return 0
	}
	return l.whole() / l.Block
}

// The outputs of a recipe, in order.
const (
	outIndices = iota
	outCodebook
	outScales
)

// specs are the stored tensors of a weight: indices, codebooks and scales.
func (l *Layout) specs(name string) []ir.Spec {
	out := []ir.Spec{
		{Name: name, DType: l.Index, Shape: l.indexShape()},
		{Name: name, DType: ir.Float, Shape: []int64{l.Groups * int64(l.Entries)}},
	}
	if l.Vector > 1 {
		out[outCodebook].Shape = append(out[outCodebook].Shape, l.entry())
	}
	if l.Block > 0 {
		out = append(out, ir.Spec{Name: name, DType: ir.Uint8, Shape: []int64{l.scales(), 1}})
	}
	return out
}

// graphBytes is about the size of the nodes in the file, with the offsets of groups.
func (l *Layout) graphBytes() (n int64) {
	n = nodeBytes
	for _, more := range []bool{l.Groups > 1, l.whole() != l.Elems, l.whole() != l.padded(), l.packed() && l.bits() == 6} {
		if more {
			n += moreBytes
		}
	}
	if l.Groups > 1 {
		n += 4 * l.Groups
	}
	return n
}
