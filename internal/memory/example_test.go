package memory_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/memory"
)

// A chain of three nodes: while one runs, its input, its output and its scratch are live.
func Example() {
	blocks := []memory.Block{
		{Name: "x", Kind: memory.Activation, Bytes: 4096, First: 0, Last: 0},
		{Name: "conv", Kind: memory.Activation, Bytes: 16384, First: 0, Last: 1},
		{Name: "patches", Kind: memory.Scratch, Bytes: 8192, First: 0, Last: 0},
		{Name: "relu", Kind: memory.Activation, Bytes: 16384, First: 1, Last: 2},
		{Name: "pool", Kind: memory.Activation, Bytes: 4096, First: 2, Last: 2},
	}
	plan, err := memory.Place(blocks)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, b := range plan.Blocks {
		fmt.Println(b.Name, "at", plan.Offsets[i])
	}
	line, err := memory.NewTimeline(blocks, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("arena", plan.Size, "peak", line.Peak, "at step", line.Peaks[0])
	// Output:
	// x at 24576
	// conv at 0
	// patches at 16384
	// relu at 16384
	// pool at 0
	// arena 32768 peak 32768 at step 1
}
