package pass

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestNodeNamesAreDistinct(t *testing.T) {
	m := ir.NewModel()
	v := m.Graph.AddValue("x")
	for _, node := range [][2]string{{"add", "a"}, {"add", "b"}, {"add_2", "c"}, {"", "add"}, {"", "d"}, {"d", "e"}} {
		n := m.Graph.NewNode(ir.OpID{Type: "Identity"}, []*ir.Value{v})
		n.Name = node[0]
		n.SetOutputs(m.Graph.AddValue(node[1]))
		m.Graph.Append(n)
	}
	nameNodes(m.Graph)
	var got []string
	for n := range m.Graph.Nodes() {
		got = append(got, n.Name)
	}
	if want := []string{"add", "add_3", "add_2", "add_4", "d_2", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
