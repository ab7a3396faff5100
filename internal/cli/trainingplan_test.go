package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
)

// holding is what people see of training so many parameters.
func holding(t *testing.T, params int64, how memory.Training) string {
	t.Helper()
	facts, err := memplan.TrainParameters(params, memplan.TrainOptions{Training: how})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := States(&b, Style{}, facts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// 4 bytes of weight, 4 of gradient and 8 of moments, 7·10^9 times.
func TestStatesAreInGigabytes(t *testing.T) {
	got := holding(t, 7e9, memory.Training{Optimizer: "adam", Precision: "float32"})
	want := `training 7,000,000,000 parameters with adam, float32 precision
  parameters         28.0 GB
  gradients          28.0 GB
  optimizer states   56.0 GB
  total             112.0 GB
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestOffloadedStatesHaveAColumn(t *testing.T) {
	got := holding(t, 1e9, memory.Training{Optimizer: "adam", Precision: "mixed", ZeRO: 1, Devices: 4, OffloadOptimizer: true})
	for _, want := range []string{", on each of 4 devices, ZeRO stage 1\n", "  optimizer states       –  3.0 GB\n", "  total             4.0 GB  3.0 GB\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// Of many layers the largest are listed, in their order, and the rest is summed up.
func TestLayersAreInTheirOrder(t *testing.T) {
	r := &memplan.TrainRun{}
	for i, n := range []int64{1, 3, 0, 2, 4} {
		r.Layers = append(r.Layers, memplan.Layer{Node: fmt.Sprint("n", i), Output: n << 20, Kept: n << 20, Difference: n << 20})
	}
	var b strings.Builder
	if err := layerTable(r, 2).write(&b); err != nil {
		t.Fatal(err)
	}
	want := `  layer     output  saved  gradient  difference
  n1          3.00   3.00         –        3.00
  n4          4.00   4.00         –        4.00
  2 more      3.00   3.00         –        3.00
  total      10.00  10.00         –       10.00
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]Quantity{"7B": 7e9, "7.5b": 75e8, "350M": 35e7, "1.3e9": 13e8, "2T": 2e12, "1000": 1000, " 10k ": 10000} {
		var q Quantity
		if err := q.Set(text); err != nil || q != want {
			t.Errorf("%q is %d, %v", text, q, err)
		}
	}
	for _, text := range []string{"", "B", "0", "-7B", "7G", "NaN", "Inf", "1e30", "0.1"} {
		var q Quantity
		if err := q.Set(text); err == nil {
			t.Errorf("%q is %d", text, q)
		}
	}
}
