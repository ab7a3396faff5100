package verify

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// fewerHeads removes the outputs that have fewer elements on an axis in the second model, such as present keys
// after heads were removed, and returns a note about them.
func fewerHeads(names []string, want, got []op.Port) (rest, notes []string) {
	types := map[string]*ir.Type{}
	for _, p := range got {
		types[p.Name] = p.Type
	}
	all, removed := names, 0
	for _, p := range want {
		i := slices.Index(names, p.Name)
		if i < 0 || shorter(types[p.Name], p.Type) < 0 {
			continue
		}
		names, removed = slices.Delete(slices.Clone(names), i, i+1), removed+1
	}
	if len(names) == 0 {
		return all, nil // whose comparison tells the sizes
	}
	if removed > 0 {
		notes = append(notes, fmt.Sprintf("%d outputs are not compared: they have fewer heads in the second model", removed))
	}
	return names, notes
}

// cacheRank is the least rank of a cache: batch, heads, positions and channels of a head. Outputs of less are
// compared, and differ.
const cacheRank = 4

// shorter is the axis on which t has fewer elements than of, by their declarations; -1 if it has none.
func shorter(t, of *ir.Type) int {
	if t == nil || of == nil || len(t.Shape) != len(of.Shape) || len(t.Shape) < cacheRank {
		return -1
	}
	for k, d := range t.Shape {
		if d.Known() && d.N < of.Shape[k].N {
			return k
		}
	}
	return -1
}

// firstHeads is x with as many elements on each axis as t declares, if it has more: a cache of a model with fewer
// heads. Caches before the first token are empty, so that it does not matter which heads these are.
func firstHeads(x *ir.Array, t *ir.Type) *ir.Array {
	if t == nil || x.Kind != ir.Dense || x.Data == nil && x.Elems() > 0 || len(t.Shape) != len(x.Shape) {
		return x
	}
	for k, d := range t.Shape {
		if !d.Known() || d.N >= x.Shape[k] {
			continue
		}
		shape := slices.Clone(x.Shape)
		shape[k] = d.N
		y := ir.NewArray(x.DType, shape...)
		block := ir.Spec{DType: x.DType, Shape: x.Shape[k+1:]}.Bytes()
		from, to := int(x.Shape[k]*block), int(d.N*block)
		for i := 0; to > 0 && i*to < len(y.Data); i++ {
			copy(y.Data[i*to:(i+1)*to], x.Data[i*from:])
		}
		x = y
	}
	return x
}
