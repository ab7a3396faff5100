package benchmark_test

import (
	"fmt"

	"github.com/mcompress/mcompress/report/benchmark"
)

// A run that would take more memory than its budget has no times.
func ExampleMeasure_Over() {
	fits := &benchmark.Measure{Batch: 1, Median: 0.002, PerSec: 500}
	over := &benchmark.Measure{Batch: 64, Needs: 96 << 20}
	fmt.Println(fits.Over(), over.Over())
	// Output: false true
}
