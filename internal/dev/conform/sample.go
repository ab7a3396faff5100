package conform

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Exhaustive reports whether sweeps run all of their cases, as make test-exhaustive does.
func Exhaustive() bool { return os.Getenv("MCOMPRESS_EXHAUSTIVE") == "1" }

// Sampled returns one of the cases, another one for each i, or all of them if Exhaustive: a sweep over i and cases then
// covers each i and each case, but not each pair.
func Sampled[T any](i int, cases []T) []T { return Part(i, len(cases), cases) }

// Part returns every n-th of the cases, others for each i, or all of them if Exhaustive.
func Part[T any](i, n int, cases []T) []T {
	if Exhaustive() {
		return cases
	}
	var part []T
	for i %= n; i < len(cases); i += n {
		part = append(part, cases[i])
	}
	return part
}

// QuickModels are the real models but for one whose images take as long as those of all others together, or all of them
// if Exhaustive.
func QuickModels(t testing.TB) []string {
	t.Helper()
	models := RealModels(t)
	if Exhaustive() {
		return models
	}
	return slices.DeleteFunc(models, func(path string) bool { return filepath.Base(filepath.Dir(path)) == "style_candy" })
}
