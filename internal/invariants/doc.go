// Package invariants says whether expensive checks of what must always hold are compiled in, by the build tag invariants, as in Pebble:
//
//	go build -tags invariants ./cmd/mcompress
//
// Then weights are written in pieces of a few hundred elements, so that a comparison with a program without the tag shows what depends on
// the pieces, and a run checks that its plan equals its result and that its ledger is complete. It imports nothing.
package invariants
