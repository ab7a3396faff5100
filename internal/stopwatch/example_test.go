package stopwatch_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/stopwatch"
)

func Example() {
	j := stopwatch.Job{Model: "../../fixtures/mlp.onnx", Backend: stopwatch.Embedded, Batch: 1, Workers: 1, Runs: 3}
	m, err := j.Run(context.Background())
	fmt.Println(m.Runs, m.Min <= m.Median, err)
	// Output: 3 true <nil>
}
