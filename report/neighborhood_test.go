package report

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

// The graph has a row and a description of each node, and marks the worst.
func TestNeighborhood(t *testing.T) {
	db := 12.5
	v := layered(5, node)
	v.Breaks.Nodes = []verification.Neighbor{
		{Value: "a", Node: "first", Op: "MatMul", Inputs: []int{}},
		{Value: v.Breaks.Value, Node: v.Breaks.Node, Op: "Add", Inputs: []int{0},
			Errors: &verification.Errors{SQNR: &db, Elements: 1}},
		{Value: "c", Node: "third", Op: "Relu", Inputs: []int{0, 1, 7, -1}},
	}
	r := verified(t, v)
	valid(t, verified(t, layered(5, node)))
	f, err := neighborhood(r.Verification)
	image := readImage(t, f.SVG, err)
	if len(image.circles) != 3 || len(image.lines) != 3 {
		t.Errorf("%d nodes and %d edges, want 3 and 3", len(image.circles), len(image.lines))
	}
	for _, want := range []string{"1: MatMul a; 2: Add node2, SQNR 12.5 dB, largest drop, after 1; 3: Relu c, after 1 and 2", "largest drop · 12.5 dB", "<title>Nodes around the largest drop</title>"} {
		if !strings.Contains(string(f.SVG), want) {
			t.Errorf("the drawing does not contain %q", want)
		}
	}
	v.Breaks = nil
	if f, err := neighborhood(v); err != nil || f.SVG != "" {
		t.Errorf("without a drop: %v, %q", err, f.SVG)
	}
}
