package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// sliceID is Slice with attributes starts, ends, axes and steps.
var sliceID = ir.OpID{Domain: "mcompress", Type: "Slice"}

// fuseSlices merges a Slice into the one before it if both have constant ranges and their axes are disjoint, as when an
// image is reduced to every second row, and the result to every second column. i is the second Slice.
func fuseSlices(f *fusion, i int) bool {
	second := f.p.steps[i]
	ranges := f.sliceRanges(second)
	if ranges == nil {
		return false
	}
	first, iFirst := f.producer(second.in[0])
	before := f.sliceRanges(first)
	if before == nil || !f.consumedBy(first.out[0], i) {
		return false
	}
	for _, axis := range ranges["axes"] {
		// Ranges of one axis would have to be composed.
		if slices.Contains(before["axes"], axis) {
			return false
		}
	}
	var attrs []*ir.Attr
	for name, r := range ranges {
		attrs = append(attrs, ir.IntsAttr(name, slices.Concat(before[name], r)...))
	}
	s := fused(sliceID, 1, second, first.in[:1], second.out, attrs...)
	if s == nil {
		return false
	}
	f.replace(i, s, i, iFirst)
	return true
}

// sliceRanges are the starts, ends, axes and steps of a Slice, nil if they are not constant, not given, or axes count
// from the end.
func (f *fusion) sliceRanges(s *step) map[string][]int64 {
	ranges := map[string][]int64{}
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		switch {
		case s.isOf(sliceID):
			ranges[name] = s.Ints(name)
		case !s.is("Slice") || len(s.in) <= 1+i:
			return nil
		default:
			r, err := op.Ints(f.array(s.in[1+i]))
			if err != nil {
				return nil
			}
			ranges[name] = r
		}
		if len(ranges[name]) != len(ranges["starts"]) {
			return nil // reported when the node runs
		}
	}
	if slices.ContainsFunc(ranges["axes"], func(axis int64) bool { return axis < 0 }) {
		return nil
	}
	return ranges
}
