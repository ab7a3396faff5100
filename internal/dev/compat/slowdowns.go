package main

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
)

// noted is the median speed compared with float below which mcompress warns of a command; measurements differ by less
// on a busy machine.
const noted = 0.9

// slowdowns is the source of pass/slowdowns.go: commands of one method, without a target, whose median speed is low.
func slowdowns(m *matrix) ([]byte, error) {
	var b strings.Builder
	b.WriteString("package pass\n\n// slowdowns are the measured ones, written by `make compat`.\nvar slowdowns = []slowdown{\n")
	for _, v := range variants() {
		if len(v.Steps) != 1 || v.Steps[0][0] != "quantize" || slices.Contains(v.Steps[0], "--target") {
			continue
		}
		for _, r := range runtimes() {
			if speeds := speedsOf(m, v.Name, r); len(speeds) > 0 && !r.Browser && median(speeds) < noted {
				fmt.Fprintf(&b, "{%q, %s, %q, %.2f, %.2f},\n", v.Steps[0][2], optionsOf(v.Steps[0][3:]), r.Name,
					median(speeds), speeds[0])
			}
		}
	}
	b.WriteString("}\n")
	return format.Source([]byte(b.String()))
}

// optionsOf are flags as a list of pass.Option, without data.
func optionsOf(args []string) string {
	var list []string
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] != "--data" {
			list = append(list, fmt.Sprintf("{Name: %q, Value: %q}", strings.TrimPrefix(args[i], "--"), args[i+1]))
		}
	}
	if list == nil {
		return "nil"
	}
	return "[]Option{" + strings.Join(list, ", ") + "}"
}

// speedsOf are the speeds of the files of a variant with right outputs in a runtime, the lowest first.
func speedsOf(m *matrix, variant string, r runtime) []float64 {
	var speeds []float64
	for _, f := range m.Files {
		if c := f.Cells[r.Name]; f.Variant == variant && c != nil && c.State == right && c.Speed > 0 {
			speeds = append(speeds, c.Speed)
		}
	}
	slices.Sort(speeds)
	return speeds
}
