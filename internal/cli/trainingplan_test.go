package cli

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
)

// statesOf is the text about the states of so many parameters.
func statesOf(t *testing.T, params int64, how memory.Training) string {
	t.Helper()
	states, err := how.States(params)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := States(&b, Style{}, params, how, states); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// 4 bytes of weight, 4 of gradient and 8 of moments, 7·10^9 times.
func TestStatesAreInGigabytes(t *testing.T) {
	got := statesOf(t, 7e9, memory.Training{Optimizer: "adam", Precision: "float32"})
	want := `training 7,000,000,000 parameters with adam, float32 precision
  parameters         28.0 GB
  gradients          28.0 GB
  optimizer states   56.0 GB
  total             112.0 GB
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if got := statesOf(t, 1e9, memory.Training{Optimizer: "sgd", Precision: "mixed", ZeRO: 1, Devices: 4}); !strings.Contains(got, ", on each of 4 devices, ZeRO stage 1\n") {
		t.Errorf("got\n%s", got)
	}
}

// Executed nodes of one pass of a layer are one line, and losses and updates belong to the line before them.
func TestLayerLog(t *testing.T) {
	step := func(layer string, phase grad.Phase, after int64) distill.PlanStep {
		return distill.PlanStep{Layer: layer, Phase: phase, After: after << 20}
	}
	steps := []distill.PlanStep{
		step("a", grad.Forward, 3), step("b", grad.Forward, 5), step("b", grad.Forward, 4), step("", grad.Forward, 6),
		step("b", grad.Backward, 7), step("", grad.Update, 2), step("a", grad.Recomputation, 4), step("a", grad.Backward, 0),
	}
	var b strings.Builder
	if err := layerLog(steps, 4).write(&b); err != nil {
		t.Fatal(err)
	}
	want := `  layer                    pass           live  difference
                           before            –
  a                        forward        3.00       +3.00
  b                        forward        6.00       +3.00
  b                        backward       2.00       -4.00
  a                        recomputation  4.00       +2.00
  1 more lines: see --top
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
