package main

import (
	"fmt"
	"slices"
	"strings"
)

// An exception is a file of a default form that is slower than float in some versions of ONNX Runtime from 1.20 on.
type exception struct {
	variant, model string
	lowest         float64
	runtimes       []string
}

// exceptions are the files for which the rule of defaults does not hold: at least slower times the speed of float in
// every ONNX Runtime from 1.20 on.
func exceptions(m *matrix) []exception {
	var all []exception
	for _, f := range m.Files {
		if f.Variant == source || !isDefault(f.Variant) {
			continue
		}
		e := exception{variant: f.Variant, model: f.Model, lowest: slower}
		for _, r := range runtimes() {
			if c := f.Cells[r.Name]; c != nil && r.Adapter == "ort" && r.Name != oldest && c.Speed > 0 &&
				c.Speed < slower {
				e.runtimes, e.lowest = append(e.runtimes, r.short()), min(e.lowest, c.Speed)
			}
		}
		if e.runtimes != nil {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b exception) int { return int(1000*a.lowest) - int(1000*b.lowest) })
	return all
}

// isDefault reports whether a variant leaves the choice of forms to the defaults.
func isDefault(variant string) bool {
	return !slices.ContainsFunc([]string{"--target", "--form", "--compute"},
		func(flag string) bool { return strings.Contains(variant, flag) })
}

// exceptionTable is the section of the page about them.
func exceptionTable(m *matrix) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Exceptions\n\nFiles of default forms below %.2f × the speed of float in a version of ONNX Runtime from 1.20 on, the lowest speed first.\n\n| command | model | lowest | versions |\n|---|---|---:|---|\n", slower)
	for _, e := range exceptions(m) {
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s |\n", e.variant, e.model, e.lowest, strings.Join(e.runtimes, ", "))
	}
	return b.String()
}
