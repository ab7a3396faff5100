package movement

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// packGather packs elements that are looked up in a table of floats: weights as indices into a codebook.
func packGather(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	table, at := in[0], in[1]
	if packed[0] != nil || packed[1] != nil || len(table.Shape) != 1 || table.DType != ir.Float && table.DType != ir.Float16 {
		return nil
	}
	entries := int(table.Shape[0])
	if !op.Known(table) || !op.Known(at) {
		return lookup(op.NewLookup(table.DType, entries, nil, int(at.Elems()), nil))
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
	return lookup(op.NewLookup(table.DType, entries, values, len(places), places))
}

// lookup is l as an interface.
func lookup(l *op.Lookup) op.Packed {
	if l == nil {
		return nil
	}
	return l
}

// packSlice packs the first elements of a packed vector.
func packSlice(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
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
