package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report"
)

// displayFlags say how results are shown and how fast, and nothing about the result.
var displayFlags = [][]string{
	{"--no-layers"}, {"--report", "none"}, {"--no-layers", "--report", "json,md,html", "--quiet", "--color", "always",
		"--workers", "1"},
}

// Display flags move no gated figure: the engine fuses other operators in sessions that also return layers.
func TestDisplayFlagsMoveNoGatedFigure(t *testing.T) {
	gates := []string{"--allow-random-inputs", "--min-sqnr", "0", "--min-cosine", "0", "--min-agreement", "0"}
	for _, model := range []string{"cnn", "transformer", "recurrent"} {
		source := filepath.Join("..", "..", "fixtures", model+".onnx")
		for _, method := range []string{"quantize --method static-int8", "quantize --method dynamic-int8",
			"quantize --method float16 --compute float16", "prune --method l1"} {
			out := filepath.Join(t.TempDir(), "out.onnx")
			result := append(strings.Fields(method), "--no-sync", "--output", out, source)
			figures := gatedFigures(t, slices.Concat(result, gates))
			for _, display := range displayFlags {
				if got := gatedFigures(t, slices.Concat(result, gates, display)); got != figures {
					t.Errorf("%s %s %v: figures %s, want %s", method, model, display, got, figures)
				}
				if slices.Contains(display, "--report") {
					continue // verify writes no report
				}
				if got := gatedFigures(t, slices.Concat([]string{"verify", source, out}, gates,
					display)); got != figures {
					t.Errorf("verify %s %s %v: figures %s, want %s", method, model, display, got, figures)
				}
			}
		}
	}
}

// gatedFigures are the values of the gates of a command.
func gatedFigures(t *testing.T, args []string) string {
	t.Helper()
	_, stdout, stderr := call(append([]string{"--json"}, args...)...)
	var r struct{ Gates []report.Gate }
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Gates) == 0 {
		t.Fatalf("%v: %v: %s", args, err, stderr)
	}
	text := ""
	for _, g := range r.Gates {
		value := "none" // of exact outputs
		if g.Value != nil {
			value = fmt.Sprint(*g.Value)
		}
		text += g.Name + " " + value + "; "
	}
	return text
}
