package verify

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A list has ten nodes besides its own: five on each side, or more on one where the other has fewer.
func TestNeighborhoodIsBounded(t *testing.T) {
	m := ir.NewModel()
	v := m.Graph.AddValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, v)
	for i := range 30 {
		v = m.Graph.Insert(nil, "Relu", []*ir.Value{v})
		v.Name = fmt.Sprint("v", i)
	}
	m.Graph.AddOutput(v)
	s, err := CommonValues(t.Context(), m, m)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int][2]int{0: {0, 10}, 2: {0, 10}, 15: {10, 20}, 29: {19, 29}} {
		list := s.neighbors(s.nodes[at], "", nil)
		if got := [2]string{list[0].Value, list[len(list)-1].Value}; len(list) != 11 ||
			!slices.Equal(got[:], []string{fmt.Sprint("v", want[0]), fmt.Sprint("v", want[1])}) {
			t.Errorf("around %d: %d nodes from %s to %s", at, len(list), got[0], got[1])
		}
	}
}
