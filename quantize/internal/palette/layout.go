package palette

import (
	"math/bits"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// A Layout divides a weight into elements (o, g, i) of Outer × Groups × Inner, in the order of the file. Codebook g has
// the elements (·, g, ·).
type Layout struct {
	Entries              int   // of a codebook
	Vector               int   // consecutive elements of an entry
	Block                int64 // consecutive elements that share a scale; 0 without scales
	Outer, Groups, Inner int64
	Elems                int64    // of the weight; with Outer 1 the last group may have fewer elements than Inner
	Index                ir.DType // of indices: Uint8 where bytes hold several
	Row                  int64    // elements of a row that is looked up; 0 if rows are not
}

// newLayout divides elements of shape into groups of channels along axis, or into runs of elements with axis -1. With
// size 0 there is one group.
func newLayout(shape []int64, axis int, size, block int64, entries, vector int) *Layout {
	l := &Layout{Entries: entries, Vector: vector, Block: block, Outer: 1, Groups: 1,
		Inner: (ir.Spec{Shape: shape}).Elems(), Index: ir.Uint8}
	l.Elems = l.Inner
	switch {
	case size == 0 || l.Elems == 0:
		return l
	// Runs of consecutive elements, without regard to axes.
	case axis < 0:
		l.Inner = min(size, l.Elems)
	default:
		for _, d := range shape[:axis] {
			l.Outer *= d
		}
		channel := l.Elems / l.Outer / shape[axis]
		if size = min(size, shape[axis]); l.Outer > 1 {
			// Groups of equal size, as they alternate in the order of the file.
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

// padded is the number of elements whose indices are stored: whole units, whole blocks and, with several groups, whole
// ones.
func (l *Layout) padded() int64 {
	n, _ := l.unit()
	step, elems := l.step(n*l.entry()), l.Elems
	if l.Groups > 1 {
		elems = l.Outer * l.Groups * l.Inner
	}
	return ceilDiv(elems, step) * step
}

// whole is the number of elements that are looked up: those that are stored, without the rest of a unit after whole
// groups.
func (l *Layout) whole() int64 {
	if l.Groups > 1 {
		return l.Outer * l.Groups * l.Inner
	}
	return l.padded()
}

// step is the least number of elements of whole blocks and whole units of n elements.
func (l *Layout) step(n int64) int64 { return lcm(n, max(1, l.Block)) }

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// rangeOpset is the first one that has Range, by which stretches are found.
const rangeOpset = 11

// setRow makes l that of a table of which rows of n elements are looked up. It reports whether there is a form for
// that.
func (l *Layout) setRow(n, opset int64) bool {
	l.Row = n
	if l.Elems > 0 && l.stretch() > 0 && (l.wholeRows() || opset >= rangeOpset) {
		return true
	}
	l.Row = 0
	return false
}

// stretch is the number of consecutive elements that lookups of rows find together, whole bytes within a row, a block
// and a group; 0 if there is none.
func (l *Layout) stretch() int64 {
	p := l.Row
	if l.Block > 0 {
		p = gcd(p, l.Block)
	}
	if l.Groups > 1 {
		p = gcd(p, l.Inner)
	}
	// Gather looks up bytes: a stretch that begins within one cannot be looked up.
	if n, _ := l.unit(); p%(n*l.entry()) != 0 {
		return 0
	}
	return p
}

// wholeRows reports whether rows have indices and scales of their own, so that these are looked up like the rows
// themselves.
func (l *Layout) wholeRows() bool {
	return l.Groups == 1 && l.stretch() > 0 && (l.Block == 0 || l.Row%l.Block == 0)
}

// tableShape is that of the bytes of a table: of rows, or else of stretches.
func (l *Layout) tableShape() []int64 {
	n, bytes := l.unit()
	p := l.stretch()
	shape := []int64{l.padded() / p, p / n / l.entry()}
	if l.wholeRows() {
		shape = []int64{l.Elems / l.Row, l.Row / p, p / n / l.entry()}
	}
	if bytes > 1 {
		shape = append(shape, bytes)
	}
	return shape
}

// indexShape is that of the stored indices.
func (l *Layout) indexShape() []int64 {
	n, bytes := l.unit()
	if l.Row > 0 {
		return l.tableShape()
	}
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

// scaleShape is that of the stored scales: those of a table have the axes of what a lookup finds.
func (l *Layout) scaleShape() []int64 {
	if l.Row == 0 {
		return []int64{l.scales(), 1}
	}
	shape := []int64{l.scales()}
	if l.wholeRows() {
		shape = []int64{l.Elems / l.Row, l.Row / l.Block}
	}
	shape = append(shape, 1) // indices of a stretch
	if l.packed() {
		shape = append(shape, 1) // those of a byte
	}
	if l.Vector > 1 {
		shape = append(shape, 1)
	}
	return shape
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
		out = append(out, ir.Spec{Name: name, DType: ir.Uint8, Shape: l.scaleShape()})
	}
	return out
}

// graphBytes is about the size of the nodes in the file, with the offsets of groups.
func (l *Layout) graphBytes() (n int64) {
	n = nodeBytes
	for _, more := range []bool{l.Groups > 1, l.whole() != l.Elems, l.whole() != l.padded(), l.packed() && l.bits() == 6,
		l.Row > 0, l.Row > 0 && !l.wholeRows()} {
		if more {
			n += moreBytes
		}
	}
	if l.Groups > 1 {
		n += 4 * l.Groups
	}
	return n
}
