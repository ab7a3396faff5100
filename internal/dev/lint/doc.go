// Package lint holds what this repository agreed on and a compiler does not check:
// which package may import which, which calls have a better replacement, how files
// look. `go test ./internal/dev/lint` runs it over the whole tree.
//
// It reads sources as text and syntax only: it builds nothing and imports nothing of
// what it judges.
package lint
