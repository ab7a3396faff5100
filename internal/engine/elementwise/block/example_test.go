package block_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
)

// A column [2,1] and a row [3] broadcast to [2,3].
func ExampleBroadcast() {
	w := block.Broadcast([]int64{2, 3}, []int64{2, 1}, []int64{3})
	w.Runs(0, w.Size(), func(at, n int, off []int) {
		fmt.Println(at, n, "column from", off[0], "step", w.Step(0), "row from", off[1], "step", w.Step(1))
	})
	// Output:
	// 0 3 column from 0 step 0 row from 0 step 1
	// 3 3 column from 1 step 0 row from 0 step 1
}
