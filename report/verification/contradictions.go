package verification

import (
	"fmt"
	"math"
)

// Contradiction is why the figures of e cannot be those of one comparison; "" if they can.
func (e *Errors) Contradiction() string {
	switch {
	case e == nil:
		return ""
	case max(e.NonFinite, e.SourceNonFinite, e.Lost) > e.Elements && e.Elements > 0:
		return fmt.Sprintf("%d, %d and %d elements of %d are not finite", e.NonFinite, e.SourceNonFinite, e.Lost, e.Elements)
	case e.Exact && (e.NonFinite > 0 || e.SQNR != nil || e.Max != nil && *e.Max != 0):
		return "its errors are those of elements that differ, and it is recorded as exact"
	case e.SQNR == nil || e.Cosine == nil:
		return ""
	}
	// No vector that has this angle with the source is nearer to it: |a-b|² ≥ |a|² (1-cos²), and no nearer than the source
	// itself for obtuse angles.
	least := 1.0
	if c := *e.Cosine; c > 0 {
		least = 1 - c*c
	}
	// Both are rounded: the cosine to nine decimals, the sums of which it is made less exactly.
	const relative, absolute = 1.01, 1e-7
	if least > relative*math.Pow(10, -*e.SQNR/10)+absolute {
		return fmt.Sprintf("a cosine similarity of %v has no SQNR of %v dB", *e.Cosine, *e.SQNR)
	}
	return ""
}

// Contradictions are lines about figures of r that cannot be those of one comparison.
func (r *Result) Contradictions() []string {
	var lines []string
	check := func(what, name string, e *Errors) {
		if why := e.Contradiction(); why != "" {
			lines = append(lines, fmt.Sprintf("%s %q: %s", what, name, why))
		}
	}
	for _, o := range r.Outputs {
		check("output", o.Name, o.Errors)
		if s := o.Sizes; s != nil {
			check("output", o.Name, s.Common)
			if s.Runs > s.Of {
				lines = append(lines, fmt.Sprintf("output %q: the size differs in %d of %d runs", o.Name, s.Runs, s.Of))
			}
		}
	}
	for i := range r.Layers {
		check("layer", r.Layers[i].Value, &r.Layers[i].Errors)
	}
	if r.Breaks == nil {
		return lines
	}
	for _, n := range r.Breaks.Nodes {
		check("node", n.Value, n.Errors)
		for _, in := range n.Inputs {
			if in < 0 || in >= len(r.Breaks.Nodes) {
				lines = append(lines, fmt.Sprintf("node %q reads node %d of %d", n.Value, in, len(r.Breaks.Nodes)))
			}
		}
	}
	return lines
}
