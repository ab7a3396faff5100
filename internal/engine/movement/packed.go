package movement

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// packGather packs elements that are looked up in a table of floats: weights as indices into a codebook.
func packGather(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	table, at := in[0], in[1]
	if packed[0] != nil || packed[1] != nil || len(table.Shape) != 1 || table.DType != ir.Float &&
		table.DType != ir.Float16 {
		return nil
	}
	entries := int(table.Shape[0])
	if !op.IsKnown(table) || !op.IsKnown(at) {
		return lookup(packedweight.NewLookup(table.DType, entries, nil, int(at.Elems()), nil))
	}
	if s := mostlyFirst(table, at); s != nil {
		return s
	}
	ints, err := op.Ints(at)
	if err != nil {
		return nil
	}
	places := make([]int64, len(ints))
	if countedFrom(places, ints, table.Shape[0]) != nil {
		return nil // reported when the node runs
	}
	values := make([]float32, entries)
	if table.DType == ir.Float {
		copy(values, ir.View[float32](table))
	} else {
		kernel.F32FromF16(values, ir.View[uint16](table))
	}
	return lookup(packedweight.NewLookup(table.DType, entries, values, len(places), places))
}

// mostlyFirst packs elements most of which are the first one of the table, a zero, as in a weight stored with a bit
// mask. It is nil if indices take less memory or the weight would not be multiplied as sparse.
func mostlyFirst(table, at *ir.Array) op.Packed {
	// A table of at most 256 entries has indices of a byte or less, which take no more memory than sparse elements.
	if table.DType != ir.Float || len(table.Data) <= 4<<8 || math.Float32bits(ir.View[float32](table)[0]) != 0 {
		return nil
	}
	size := int(at.DType.Bits() / 8)
	if !spmm.FloatDensity.Counts(int(at.Elems()), size,
		func(_ []byte, from, to int) []byte { return at.Data[from*size : to*size] }) {
		return nil
	}
	positions := spmm.NonZeros(nil, at.Data, size)
	values := make([]float32, len(positions))
	found := entriesAt[int64]
	if at.DType == ir.Int32 {
		found = entriesAt[int32]
	}
	if !found(values, table, at, positions) {
		return nil // reported when the node runs
	}
	return sparse(packedweight.NewSparse(len(positions), positions, values))
}

// entriesAt writes the entries of the table at the indices that are at these positions of at, and reports whether it
// has all.
func entriesAt[P int32 | int64](dst []float32, table, at *ir.Array, positions []int32) bool {
	entries, indices := ir.View[float32](table), ir.View[P](at)
	for i, p := range positions {
		entry, ok := fromStart(int64(indices[p]), table.Shape[0])
		if !ok {
			return false
		}
		dst[i] = entries[entry]
	}
	return true
}

// lookup is l as an interface.
func lookup(l *packedweight.Lookup) op.Packed {
	if l == nil {
		return nil
	}
	return l
}

// sparse is s as an interface.
func sparse(s *packedweight.Sparse) op.Packed {
	if s == nil {
		return nil
	}
	return s
}

// packConstantOfShape packs equal floats.
func packConstantOfShape(n *op.Node, _ []*ir.Array, _ []op.Packed) op.Packed {
	a, err := filling(n)
	if err != nil || a.DType != ir.Float {
		return nil
	}
	return packedweight.Filled(ir.View[float32](a)[0])
}

// packScatterElements packs values that are written to a vector of zeros at ascending positions: the sparse forms of
// weights.
func packScatterElements(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	zeros, ok := packed[0].(packedweight.Filled)
	at, values := in[1], in[2]
	if !ok || math.Float32bits(float32(zeros)) != 0 || len(in[0].Shape) != 1 || packed[1] != nil ||
		n.Text("reduction", "none") != "none" {
		return nil
	}
	if packed[2] != nil {
		values = packedweight.Dense(packed[2], values.Shape)
	}
	if !op.IsKnown(at) || !op.IsKnown(values) {
		return packedweight.NewSparse[int32](int(at.Elems()), nil, nil)
	}
	// The usual form, int32 and non-negative, needs no copy of the positions: ascending ones are in range if the last
	// one is. NewSparse is nil if they do not ascend or one is negative.
	if last := at.Elems() - 1; at.DType == ir.Int32 && last >= 0 && int64(ir.View[int32](at)[last]) < in[0].Shape[0] {
		if s := packedweight.NewSparse(int(at.Elems()), ir.View[int32](at), ir.View[float32](values)); s != nil {
			return s
		}
	}
	ints, err := op.Ints(at)
	if err != nil {
		return nil
	}
	positions := make([]int64, len(ints))
	if countedFrom(positions, ints, in[0].Shape[0]) != nil {
		return nil // reported when the node runs
	}
	return sparse(packedweight.NewSparse(len(positions), positions, ir.View[float32](values)))
}

// packSlice packs the first elements of a packed vector.
func packSlice(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	// Only a start of a vector: indices and positions of the rest keep their meaning. Bits that pad the last byte are
	// cut so.
	_, s, err := spans(n, in, listInput)
	if err != nil || packed[0] == nil || len(s) != 1 || s[0].start != 0 || s[0].step != 1 {
		return nil
	}
	return packed[0]
}

// decodesGather reports whether Gather decodes rows of a packed table.
func decodesGather(n *op.Node, i int, table *ir.Array) bool {
	return i == 0 && (table == nil || table.DType == ir.Float && gathersRows(n, table))
}

// decodeRows decodes the rows at these positions.
func decodeRows(c *op.Call, at []int64, inner int) {
	dst := ir.View[float32](c.Out[0])
	const elems = 1 << 12 // minimum number of elements of a task
	c.Pool.Rows(len(at), elems/max(inner, 1)+1, func(from, to int) {
		for i := from; i < to; i++ {
			c.Packed.Decode(dst[i*inner:][:inner], op.Part{At: int(at[i]) * inner, Rows: 1, Cols: inner, DstCol: 1})
		}
	})
}
