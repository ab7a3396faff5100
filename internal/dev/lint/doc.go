// Package lint holds the rules of this repository that a compiler does not check:
// which package may import which, which calls have a better replacement, how files
// look. `go test ./internal/dev/lint` runs it over the whole tree.
//
// It reads sources as text and syntax only: it neither builds nor imports them.
package lint
