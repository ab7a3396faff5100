package latency_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/latency"
)

func Example() {
	j := latency.Job{Model: "../../fixtures/mlp.onnx", Backend: latency.Embedded, Batch: 1, Workers: 1, Runs: 3}
	m, err := j.Run(context.Background())
	fmt.Println(m.Runs, m.Min <= m.Median, err)
	// Output: 3 true <nil>
}
