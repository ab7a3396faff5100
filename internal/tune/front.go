package tune

import (
	"cmp"
	"slices"
)

// A point is a choice for the first layers, with what it takes and does as far as that adds up.
type point struct {
	bytes  int64
	damage float64
	last   int    // candidate of the last of them
	before *point // the choice for those in front of it
}

// mostPoints is how many choices are kept in mind: halving then takes nine trials.
const mostPoints = 512

// front are the choices of which no other takes fewer bytes and does less damage, the smallest first: layer by layer, what is
// worse in both for some layers cannot be part of what is better for all. It ends with what does the least damage.
func front(layers []*layer) []choice {
	points := []*point{{}}
	for _, l := range layers {
		var next []*point
		for _, v := range append(slices.Clone(l.variants), l.as(none)) {
			for _, p := range points {
				next = append(next, &point{p.bytes + v.bytes, p.damage + v.damage, v.candidate, p})
			}
		}
		points = thinned(undominated(next))
	}
	choices := make([]choice, len(points))
	for i, p := range points {
		choices[i] = make(choice, len(layers))
		for k := len(layers) - 1; k >= 0; k-- {
			choices[i][k], p = p.last, p.before
		}
	}
	return choices
}

// undominated are the points that no other beats, by bytes.
func undominated(points []*point) []*point {
	slices.SortStableFunc(points, func(a, b *point) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.damage, b.damage))
	})
	var kept []*point
	for _, p := range points {
		if len(kept) == 0 || p.damage < kept[len(kept)-1].damage {
			kept = append(kept, p)
		}
	}
	return kept
}

// thinned are mostPoints of points, evenly, with the first and the last.
func thinned(points []*point) []*point {
	if len(points) <= mostPoints {
		return points
	}
	kept := make([]*point, mostPoints)
	for i := range kept {
		kept[i] = points[i*(len(points)-1)/(mostPoints-1)]
	}
	return kept
}
