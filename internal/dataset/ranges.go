package dataset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// Ranges are the minimum and maximum of m's integer inputs that are indices into a table; they must be below its
// length.
func Ranges(m *ir.Model) map[string][2]int64 {
	out := map[string][2]int64{}
	for _, v := range m.Graph.Inputs {
		if v.Initializer() == nil && v.Type != nil && (v.Type.Elem == ir.Int64 || v.Type.Elem == ir.Int32) {
			if n := shortest(v, map[*ir.Value]bool{}); n > 0 {
				out[v.Name] = [2]int64{0, n - 1}
			}
		}
	}
	return out
}

// shortest is the length of the shortest table that v's elements are indices into, 0 without table.
func shortest(v *ir.Value, seen map[*ir.Value]bool) int64 {
	if seen[v] {
		return 0
	}
	seen[v] = true
	least := int64(0)
	note := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		if table := tableLength(u); table > 0 {
			note(table)
		} else if moves(u) {
			for _, o := range u.Node.Outputs {
				if o != nil {
					note(shortest(o, seen))
				}
			}
		}
	}
	return least
}

// tableLength is the length of the table axis that u's node indexes by the value, 0 for other nodes.
func tableLength(u ir.Use) int64 {
	x, ok := operator.Of(u.Node).Table(u.Index)
	if !ok || u.Node.Input(x.Table) == nil {
		return 0
	}
	return length(u.Node.Input(x.Table), x.Axis(u.Node))
}

// length is the size of an axis of v, 0 if unknown.
func length(v *ir.Value, axis int64) int64 {
	var dims []ir.Dim
	switch {
	case v == nil:
	case v.Initializer() != nil:
		for _, n := range v.Initializer().Shape {
			dims = append(dims, ir.Dim{N: n})
		}
	case v.Type != nil:
		dims = v.Type.Shape
	}
	if axis < 0 {
		axis += int64(len(dims))
	}
	if axis < 0 || axis >= int64(len(dims)) || !dims[axis].Known() {
		return 0
	}
	return dims[axis].N
}

// moves reports whether u's node copies elements of the value; a Cast of integers keeps them.
func moves(u ir.Use) bool {
	return u.Node.Op.Is("Cast") || operator.Of(u.Node).MovesInput(u.Index)
}
