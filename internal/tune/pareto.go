package tune

import (
	"cmp"
	"slices"
)

// A point is a choice for the first layers, with its bytes and sensitivity, assumed to be additive.
type point struct {
	bytes       int64
	sensitivity float64
	last        int    // candidate of the last layer
	previous    *point // the choice for the layers before it
}

// maxPoints is the maximum number of points: bisection then requires nine trials.
const maxPoints = 512

// paretoFront is the Pareto front of bytes and sensitivity, smallest first, by dynamic programming over layers: a
// dominated choice for some layers cannot be part of a non-dominated one for all. It ends with the choice of minimum
// sensitivity.
func paretoFront(layers []*layer) []choice {
	points := []*point{{}}
	for _, l := range layers {
		var next []*point
		for _, v := range append(slices.Clone(l.variants), l.variantOf(none)) {
			for _, p := range points {
				next = append(next, &point{p.bytes + v.bytes, p.sensitivity + v.sensitivity, v.candidate, p})
			}
		}
		// Thinned after each layer: the number of points would grow with the product of variants.
		points = thinned(nonDominated(next))
	}
	choices := make([]choice, len(points))
	for i, p := range points {
		choices[i] = make(choice, len(layers))
		for k := len(layers) - 1; k >= 0; k-- {
			// Points hold their predecessor only: a choice of all layers for each point and step would take the square of
			// the layers.
			choices[i][k], p = p.last, p.previous
		}
	}
	return choices
}

// nonDominated are the non-dominated points, sorted by bytes.
func nonDominated(points []*point) []*point {
	slices.SortStableFunc(points, func(a, b *point) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.sensitivity, b.sensitivity))
	})
	var kept []*point
	for _, p := range points {
		if len(kept) == 0 || p.sensitivity < kept[len(kept)-1].sensitivity {
			kept = append(kept, p)
		}
	}
	return kept
}

// thinned is maxPoints of points, evenly spaced, including the first and the last.
func thinned(points []*point) []*point {
	if len(points) <= maxPoints {
		return points
	}
	kept := make([]*point, maxPoints)
	for i := range kept {
		kept[i] = points[i*(len(points)-1)/(maxPoints-1)]
	}
	return kept
}
