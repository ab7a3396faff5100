package memoryplan_test

import (
	"fmt"

	"github.com/mcompress/mcompress/report/memoryplan"
)

// A run counts its inputs and outputs in addition to the arena.
func ExampleRun_PortBytes() {
	r := &memoryplan.Run{
		Inputs:  []memoryplan.Port{{Name: "image", Type: "float[1,3,8,8]", Bytes: 768}},
		Outputs: []memoryplan.Port{{Name: "scores", Type: "float[1,10]", Bytes: 40}},
	}
	fmt.Println(r.PortBytes())
	// Output:
	// 808
}
