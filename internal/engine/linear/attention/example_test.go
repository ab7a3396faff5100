package attention_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// One query that is equally similar to both keys.
func Example() {
	s := attention.Shape{Queries: 1, Keys: 2, Size: 2, Value: 1}
	pool := op.NewPool(1)
	defer pool.Close()
	h := attention.Head[float64]{
		Q: gemm.Rows([]float64{1, 1}, 2),
		K: gemm.Rows([]float64{1, 0, 0, 1}, 2),
		V: gemm.Rows([]float64{10, 30}, 1),
		Y: make([]float64, 1), Stride: 1,
	}
	work := make([]byte, attention.Work[float64](s, 1, 1))
	attention.Run(pool, s, work, attention.Options[float64]{Scale: 1}, []attention.Head[float64]{h})
	fmt.Println(h.Y)
	// Output: [20]
}
