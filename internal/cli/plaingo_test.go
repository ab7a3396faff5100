package cli_test

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/report/benchmark"
)

// Times of the engine without kernels for the CPU are marked.
func TestBenchOfPlainGo(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var b strings.Builder
		if err := cli.Bench(&b, []*benchmark.Measure{{Model: "model.onnx", Backend: latency.Embedded, PlainGo: plain}}, 1); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "plain Go"); got != plain {
			t.Errorf("plain Go %v:\n%s", plain, &b)
		}
	}
}
