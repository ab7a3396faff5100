package inspection_test

import (
	"fmt"

	"github.com/mcompress/mcompress/report/inspection"
)

// Modules of a model form a tree.
func Example() {
	m := &inspection.Model{Tensors: []inspection.Tensor{
		{Name: "a", Module: "encoder.query", Bytes: 64},
		{Name: "b", Module: "encoder.key", Bytes: 32},
	}}
	for _, x := range m.Modules().Modules {
		fmt.Println(x.Name, x.Tensors, x.Bytes)
	}
	// Output:
	// encoder 2 96
}
