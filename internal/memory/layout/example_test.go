package layout_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/memory/layout"
)

// A model exported from a channels-last framework has transposes around each convolution. With channels-last
// convolutions all of them are redundant.
func Example() {
	g := &layout.Graph{
		Values: []layout.Value{
			{Name: "x", Bytes: 1200}, {Name: "x'", Bytes: 1200},
			{Name: "conv", Bytes: 6400}, {Name: "conv'", Bytes: 6400},
			{Name: "logits", Bytes: 40, Output: true},
		},
		Nodes: []layout.Node{
			{Name: "in", Role: layout.ToFirst, Inputs: []int{0}, Outputs: []int{1}},
			{Name: "conv", Role: layout.Sensitive, Inputs: []int{1}, Outputs: []int{2}},
			{Name: "out", Role: layout.ToLast, Inputs: []int{2}, Outputs: []int{3}},
			{Name: "flatten and multiply", Role: layout.Breaking, Inputs: []int{3}, Outputs: []int{4}},
		},
	}
	e, err := layout.ChannelsLast(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", len(e.Added), "vanished", len(e.Vanished), "saved", e.Saved(), "bytes")
	// Output: added 0 vanished 2 saved 15200 bytes
}
