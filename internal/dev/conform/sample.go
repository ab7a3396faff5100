package conform

import "os"

// Exhaustive reports whether sweeps run all of their cases, as make test-exhaustive does.
func Exhaustive() bool { return os.Getenv("MCOMPRESS_EXHAUSTIVE") == "1" }

// Sampled returns one of the cases, another one for each i, or all of them if Exhaustive: a sweep over i and cases then covers
// each i and each case, but not each pair.
func Sampled[T any](i int, cases []T) []T {
	if Exhaustive() {
		return cases
	}
	i %= len(cases)
	return cases[i : i+1]
}
