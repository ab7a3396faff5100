package calibrate

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// unpadded is in without padding at the end of the sequence axis: the positions where an input called a mask, [batch,
// positions], is zero for the whole batch. Padding is not data, but would count in means, ranges and Hessians; for
// short texts in long rows it is the larger part. It cuts the inputs that share the axis by its name, if there are any
// besides the mask.
func unpadded(g *ir.Graph, in map[string]*ir.Array) map[string]*ir.Array {
	for _, mask := range g.Inputs {
		a := in[mask.Name]
		if a == nil || a.Kind != ir.Dense || a.DType == ir.String || len(a.Shape) != 2 ||
			!strings.Contains(mask.Name, "mask") {
			continue
		}
		name, size := axisName(mask, 1), a.Shape[1]
		to := lastPosition(a)
		// Nothing to cut, or nothing left; fixed axes cannot be cut.
		if name == "" || to == 0 || to == size {
			continue
		}
		if cut, ok := shorter(g, in, name, size, to); ok {
			return cut
		}
	}
	return in
}

// axisName is the name of a dynamic axis of v, "" if it has none.
func axisName(v *ir.Value, axis int) string {
	if v.Type == nil || axis >= len(v.Type.Shape) {
		return ""
	}
	return v.Type.Shape[axis].Param
}

// lastPosition is the number of columns of a up to the last non-zero one.
func lastPosition(a *ir.Array) int64 {
	size := int64(len(a.Data)) / max(1, a.Elems())
	last := int64(0)
	for i, b := range a.Data {
		if b != 0 {
			last = max(last, int64(i)/size%a.Shape[1]+1)
		}
	}
	return last
}

// shorter truncates the named axis of all inputs if at least two inputs have it with that size.
func shorter(g *ir.Graph, in map[string]*ir.Array, name string, size, to int64) (map[string]*ir.Array, bool) {
	out, n := map[string]*ir.Array{}, 0
	for _, v := range g.Inputs {
		a := in[v.Name]
		if a == nil {
			continue
		}
		for axis := range a.Shape {
			if axisName(v, axis) != name {
				continue
			}
			if a.Shape[axis] != size || a.Kind != ir.Dense || a.DType == ir.String {
				return nil, false
			}
			a = head(a, axis, to)
			n++
		}
		out[v.Name] = a
	}
	return out, n > 1
}

// head is the first positions of a along an axis.
func head(a *ir.Array, axis int, to int64) *ir.Array {
	shape := slices.Clone(a.Shape)
	shape[axis] = to
	h := ir.NewArray(a.DType, shape...)
	rows := (ir.Spec{Shape: a.Shape[:axis]}).Elems()
	from, size := int64(len(a.Data))/max(1, rows), int64(len(h.Data))/max(1, rows)
	for i := range rows {
		copy(h.Data[i*size:][:size], a.Data[i*from:])
	}
	return h
}
